// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex, Writable } from "node:stream";
import type { Exchange } from "./exchange.ts";

/**
 * Passes bytes both ways between an exchange (whose head has been sent) and a connection, each at the other's pace; the
 * end of one direction is passed on, and a break of either side breaks the other. Resolves when both are over.
 */
export function relayBytes(exchange: Exchange, socket: Duplex): Promise<void> {
  let ended = false;
  exchange.listenForDrain(() => socket.resume());
  exchange.onOver(() => {
    if (exchange.gone) socket.destroy();
  });
  socket.on("data", (chunk: Buffer) => {
    if (!exchange.write(chunk)) socket.pause();
  });
  socket.on("end", () => {
    ended = true;
    exchange.endSending();
  });
  socket.on("error", () => exchange.reset("guest closed"));
  socket.resume(); // a dialled connection comes paused
  sendBody(exchange, socket).catch(() => socket.destroy()); // the caller has gone
  return new Promise((resolve) => {
    socket.once("close", () => {
      if (ended) exchange.end();
      else exchange.reset("guest closed");
      resolve();
    });
  });
}

/** What a body can be written to. */
export type BodySink = Pick<Writable, "write" | "end" | "once" | "off">;

/** Passes the request's body on, at the sink's pace. Rejects with `CallerGone`. */
export async function sendBody({ body }: Exchange, sink: BodySink): Promise<void> {
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
    if (sink.write(chunk)) continue;
    await roomIn(sink);
  }
  sink.end();
}

/** Resolves when the sink has room again, or is closed. */
function roomIn(sink: BodySink): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      sink.off("drain", done);
      sink.off("close", done);
      resolve();
    };
    sink.once("drain", done);
    sink.once("close", done);
  });
}
