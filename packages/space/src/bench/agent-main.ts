// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of the agent that the plain proxies lead to: the bridge's own code before a real guest, with a small HTTP
// front in the same process in place of the worker.

import { once } from "node:events";
import { chmodSync } from "node:fs";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { duplexPair } from "node:stream";
import { type ActivationId, parseActivationId, parseSandboxId, Secret } from "@space/model";
import { peerCredentials, processStartTime } from "@space/platform-linux";
import { type ConnectedGuest, createSpacedHost } from "@space/spaced-host";
import { FrameLink, type HostOperationHead, hostControlOver, parseAnswerHead } from "@space/wire";
import * as v from "valibot";
import { portOf } from "../host/mesh-sockets.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { serveBenchmark } from "./bench-child.ts";

const configSchema = v.strictObject({
  activationId: v.string(),
  sandboxId: v.string(),
  secret: v.instance(Uint8Array),
  guestSocket: v.string(),
  guest: v.strictObject({ pid: v.number(), startTime: v.string() }),
  /** Where the proxies find this agent. */
  listen: v.string(),
});

serveBenchmark(async (given) => {
  const config = v.parse(configSchema, given);
  const activation = parseActivationId(config.activationId);
  const link = openBridge();
  await hostControlOver(link, systemClock).adopt({
    activationId: activation,
    sandboxId: parseSandboxId(config.sandboxId),
    template: "base",
    socketPath: config.guestSocket,
    activationSecret: new Secret(config.secret),
    guest: config.guest,
    isFirst: true,
    variables: {},
  });
  const serve = front(link, activation);
  const forProxies = createServer(serve);
  const direct = createServer(serve);
  await new Promise<void>((resolve) => forProxies.listen(config.listen, resolve));
  chmodSync(config.listen, 0o666); // nginx's workers are another user; the folder is this run's own
  await new Promise<void>((resolve) => direct.listen(0, "127.0.0.1", resolve));
  return { ready: portOf(direct) };
});

function openBridge(): FrameLink {
  const [near, far] = duplexPair();
  const host = createSpacedHost(
    { daemon: { uid: 0 } },
    {
      clock: systemClock,
      random: systemRandom,
      connectGuest,
      onOrphaned: () => process.exit(1),
    },
  );
  host.serve(far, { pid: process.pid, uid: 0, startTime: processStartTime(process.pid) ?? "" });
  return new FrameLink(near, { dialled: true });
}

async function connectGuest(path: string): Promise<ConnectedGuest> {
  const socket = connect({ path, allowHalfOpen: true });
  await once(socket, "connect");
  const { pid, uid } = peerCredentials(socket);
  return { socket, peer: { pid, uid, startTime: processStartTime(pid) ?? "" } };
}

/** Each request without a body becomes one operation, as a worker would open it. */
function front(link: FrameLink, activation: ActivationId): RequestListener {
  return ({ method = "GET", url = "/" }, response) => {
    const head: HostOperationHead = {
      activation,
      target: { purpose: "control" },
      method,
      path: url,
      headers: [],
    };
    const stream = link.open(
      JSON.stringify(head),
      {
        onHead: (bytes) => answer(bytes, response),
        onData: (chunk) => {
          response.write(chunk);
          stream.consumed(chunk.length);
        },
        onEnd: () => void response.end(),
        onReset: () => void response.destroy(),
      },
      true,
    );
  };
}

function answer(bytes: Buffer, response: ServerResponse): void {
  const { status, headers } = parseAnswerHead(JSON.parse(bytes.toString("utf8")));
  response.writeHead(status, [...headers]);
}
