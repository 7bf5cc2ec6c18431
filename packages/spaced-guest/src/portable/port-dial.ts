// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { connect, type Socket } from "node:net";
import { encodeFrame, type PayloadReader } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { GuestFrame } from "../guest-protocol.ts";
import { errnoOf } from "./libc.ts";
import type { PeerConnection } from "./peer-connection.ts";

const connectLimitMs = 5000;
const errnoRefused = 111;
const errnoTimedOut = 110;

/** DIAL: the connection becomes a byte pipe to a port on the guest's loopback. Rejects with `GuestError` before that. */
export async function answerDial(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const upstream = await connectLoopback(payload.u16());
  const { socket, early } = connection.release();
  socket.write(encodeFrame(GuestFrame.ok));
  if (early.length > 0) upstream.write(early);
  await new Promise<void>((resolve) => {
    let open = 2;
    const end = (): void => {
      socket.destroy();
      upstream.destroy();
      resolve();
    };
    for (const side of [socket, upstream]) {
      side.on("error", end);
      side.on("close", () => {
        open -= 1;
        if (open === 0 || !socket.readableEnded || !upstream.readableEnded) end();
      });
    }
    socket.pipe(upstream);
    upstream.pipe(socket);
  });
}

async function connectLoopback(port: number): Promise<Socket> {
  try {
    return await connectTo("127.0.0.1", port);
  } catch (error) {
    if (errnoOf(error) !== errnoRefused) throw error;
  }
  try {
    return await connectTo("::1", port);
  } catch {
    throw new GuestError(errnoRefused, "connect"); // no IPv6 at all counts as nobody listening
  }
}

function connectTo(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const limit = setTimeout(() => socket.destroy(new GuestError(errnoTimedOut, "connect")), connectLimitMs);
    socket.once("connect", () => {
      clearTimeout(limit);
      socket.removeAllListeners("error");
      resolve(socket);
    });
    socket.once("error", (error) => {
      clearTimeout(limit);
      reject(error instanceof GuestError ? error : new GuestError(errnoOf(error), "connect"));
    });
  });
}
