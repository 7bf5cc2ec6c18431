// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTcpServer, type Server } from "node:net";
import { describe, it } from "node:test";
import { createServer } from "node:tls";

import { isSpaceError } from "@space/model";

import { createAuthority, issuePeer, type TlsIdentity } from "./authority.ts";
import { type DialRequest, dialPeer } from "./dial.ts";
import { peerName } from "./peer.ts";
import { serverOptions } from "./tls-options.ts";

const nowMs = Date.now();
const mesh = createAuthority({ commonName: "mesh", nowMs });
const gateway = issuePeer(mesh, { commonName: "gateway", nowMs });
const worker = issuePeer(mesh, { commonName: "wrk_aaaaaaaaaaaaaaaa", nowMs });
const never = new AbortController().signal;
const closed = (error: unknown): boolean => isSpaceError(error, "link/closed");

async function listening(server: Server): Promise<{ readonly request: DialRequest } & Disposable> {
  server.on("error", () => undefined).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  const request: DialRequest = {
    host: "127.0.0.1",
    port: address.port,
    expectedName: worker.name,
    identity: gateway,
    authorityCertificate: mesh.certificate,
  };
  return { request, [Symbol.dispose]: () => server.close() };
}

/** Counts the bytes that a component got from who dialled it. */
function component(identity: TlsIdentity): { readonly server: Server; readonly got: () => number } {
  let bytes = 0;
  const server = createServer(serverOptions(identity, mesh.certificate), (socket) => {
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    socket.on("error", () => undefined);
  });
  return { server, got: () => bytes };
}

describe("dialling a component", () => {
  it("resolves with a socket whose peer is proved", async () => {
    using at = await listening(component(worker).server);
    const socket = await dialPeer(at.request, never);
    assert.equal(peerName(socket), worker.name);
    socket.destroy(new Error("before its owner listens"));
    await new Promise((resolve) => socket.once("close", resolve));
  });

  it("throws that another component answers, and has sent it nothing (incident 36)", async () => {
    const other = component(issuePeer(mesh, { commonName: "wrk_bbbbbbbbbbbbbbbb", nowMs }));
    using at = await listening(other.server);
    await assert.rejects(dialPeer(at.request, never), (error) => isSpaceError(error, "endpoint/mismatch"));
    assert.equal(other.got(), 0);
  });

  it("throws that what answers is no component, when its certificate is another authority's or has run out", async () => {
    const { name: commonName } = worker;
    const forged = issuePeer(createAuthority({ commonName: "mesh", nowMs }), { commonName, nowMs });
    const expired = issuePeer(mesh, { commonName, nowMs: nowMs - 10 * 86_400_000, days: 1 });
    for (const [identity, problem] of [
      [forged, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
      [expired, "CERT_HAS_EXPIRED"],
    ] as const) {
      const other = component(identity);
      using at = await listening(other.server);
      await assert.rejects(
        dialPeer(at.request, never),
        (error) => isSpaceError(error, "endpoint/mismatch") && error.details.problem === problem,
      );
      assert.equal(other.got(), 0);
    }
  });

  it("throws when nobody listens, and when what listens speaks no TLS", async () => {
    const nobody = await listening(createTcpServer());
    nobody[Symbol.dispose]();
    await assert.rejects(dialPeer(nobody.request, never), closed);
    using rude = await listening(
      createTcpServer((socket) => socket.on("error", () => undefined).end("hello\n")),
    );
    await assert.rejects(dialPeer(rude.request, never), closed);
    using mute = await listening(createTcpServer((socket) => socket.on("error", () => undefined).destroy()));
    await assert.rejects(dialPeer(mute.request, never), closed);
  });

  it("gives up when it is told to, also on a peer that never answers", async () => {
    const sockets: Disposable[] = [];
    const silent = createTcpServer((socket) => {
      sockets.push({ [Symbol.dispose]: () => socket.destroy() });
      stop.abort();
    });
    const stop = new AbortController();
    using at = await listening(silent);
    await assert.rejects(dialPeer(at.request, stop.signal), closed);
    await assert.rejects(dialPeer(at.request, stop.signal), closed);
    assert.equal(sockets.length, 1); // the second was not even dialled
    for (const socket of sockets) socket[Symbol.dispose]();
  });
});
