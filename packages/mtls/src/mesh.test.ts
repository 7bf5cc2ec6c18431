// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { type ConnectionOptions, connect, createServer, TLSSocket, type TlsOptions } from "node:tls";

import { isSpaceError } from "@space/model";

import { createAuthority, issueClient, issuePeer, issueServer } from "./authority.ts";
import { peerName, peerThumbprint } from "./peer.ts";
import { clientOptions, edgeOptions, serverOptions } from "./tls-options.ts";

const nowMs = Date.now();
const mesh = createAuthority({ commonName: "mesh", nowMs });
const stranger = createAuthority({ commonName: "mesh", nowMs }); // the same name, another key
const worker = issuePeer(mesh, { commonName: "wrk_aaaaaaaaaaaaaaaa", nowMs });
const otherWorker = issuePeer(mesh, { commonName: "wrk_bbbbbbbbbbbbbbbb", nowMs });
const gateway = issuePeer(mesh, { commonName: "gateway", nowMs });

interface Meeting {
  /** What each side made of the other: the name it verified, or "refused". */
  readonly atServer: string;
  readonly atClient: string;
  readonly thumbprintAtServer?: string;
  readonly protocol?: string | null;
}

/** One connection on loopback, a byte each way; a side that gets no byte was refused or refused. */
async function meet(listen: TlsOptions, dial: ConnectionOptions): Promise<Meeting> {
  const accepted = Promise.withResolvers<Partial<Meeting>>();
  const server = createServer(listen, (socket) => {
    socket.on("error", () => accepted.resolve({ atServer: "refused" }));
    socket.once("data", () => {
      try {
        accepted.resolve({
          atServer: peerName(socket),
          thumbprintAtServer: peerThumbprint(socket),
          protocol: socket.getProtocol(),
        });
      } catch {
        accepted.resolve({ atServer: "refused" }); // this listener admits verified components only
      }
      socket.end("s");
    });
  });
  server.on("tlsClientError", () => accepted.resolve({ atServer: "refused" }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert(typeof address === "object" && address !== null);

  const dialled = Promise.withResolvers<string>();
  const client = connect({ ...dial, host: "127.0.0.1", port: address.port });
  client.on("secureConnect", () => client.write("c"));
  client.once("data", () => dialled.resolve(peerName(client)));
  client.on("error", () => dialled.resolve("refused"));
  client.on("close", () => {
    dialled.resolve("refused");
    accepted.resolve({ atServer: "refused" }); // the client went away before it said anything
  });
  const atClient = await dialled.promise;
  const seen = await accepted.promise;
  client.destroy();
  server.close();
  return { atServer: "refused", ...seen, atClient };
}

const refusedByBoth = { atServer: "refused", atClient: "refused" };

describe("a private hop", () => {
  it("shows each side the other's verified name, over TLS 1.3", async () => {
    const met = await meet(
      serverOptions(worker, mesh.certificate),
      clientOptions(gateway, mesh.certificate, worker.name),
    );
    assert.equal(met.atServer, "gateway");
    assert.equal(met.atClient, worker.name);
    assert.equal(met.thumbprintAtServer, gateway.thumbprint);
    assert.equal(met.protocol, "TLSv1.3");
  });

  it("refuses a client without a certificate", async () => {
    const dial = { ca: mesh.certificate, checkServerIdentity: () => undefined };
    assert.deepEqual(await meet(serverOptions(worker, mesh.certificate), dial), refusedByBoth);
  });

  it("refuses a client whose certificate another authority of the same name signed", async () => {
    const forged = issuePeer(stranger, { commonName: "gateway", nowMs });
    const dial = clientOptions(forged, mesh.certificate, worker.name);
    assert.deepEqual(await meet(serverOptions(worker, mesh.certificate), dial), refusedByBoth);
  });

  it("refuses a client that signed its certificate itself", async () => {
    const self = createAuthority({ commonName: "gateway", nowMs });
    const identity = { ...self, name: "gateway", thumbprint: "" };
    const dial = clientOptions(identity, mesh.certificate, worker.name);
    assert.deepEqual(await meet(serverOptions(worker, mesh.certificate), dial), refusedByBoth);
  });

  it("refuses a server of another authority, and says nothing to it", async () => {
    const forged = issuePeer(stranger, { commonName: worker.name, nowMs });
    const listen = { ...serverOptions(forged, stranger.certificate), requestCert: false };
    const dial = clientOptions(gateway, mesh.certificate, worker.name);
    assert.deepEqual(await meet(listen, dial), refusedByBoth);
  });

  it("refuses a server that is another component of the same mesh", async () => {
    const listen = serverOptions(otherWorker, mesh.certificate);
    const dial = clientOptions(gateway, mesh.certificate, worker.name);
    assert.equal((await meet(listen, dial)).atClient, "refused");
  });

  it("refuses a name that a certificate carries beside its own", async () => {
    const other = issuePeer(mesh, { commonName: "wrk_bbbbbbbbbbbbbbbb", names: ["gateway"], nowMs });
    const dial = clientOptions(worker, mesh.certificate, "gateway");
    assert.equal((await meet(serverOptions(other, mesh.certificate), dial)).atClient, "refused");
  });

  it("refuses a certificate that has run out, on either side", async () => {
    const old = (name: string) =>
      issuePeer(mesh, { commonName: name, nowMs: nowMs - 3 * 86_400_000, days: 1 });
    const listen = serverOptions(worker, mesh.certificate);
    const dialOld = clientOptions(old("gateway"), mesh.certificate, worker.name);
    assert.deepEqual(await meet(listen, dialOld), refusedByBoth);
    const listenOld = serverOptions(old(worker.name), mesh.certificate);
    const dial = clientOptions(gateway, mesh.certificate, worker.name);
    assert.equal((await meet(listenOld, dial)).atClient, "refused");
  });

  it("refuses a certificate for serving from who dials, and one for dialling from who serves", async () => {
    const dial = clientOptions(
      issueServer(mesh, { commonName: "gateway", nowMs }),
      mesh.certificate,
      worker.name,
    );
    assert.deepEqual(await meet(serverOptions(worker, mesh.certificate), dial), refusedByBoth);
    const listen = serverOptions(issueClient(mesh, { commonName: worker.name, nowMs }), mesh.certificate);
    const met = await meet(listen, clientOptions(gateway, mesh.certificate, worker.name));
    assert.equal(met.atClient, "refused");
  });

  it("refuses TLS 1.2", async () => {
    const dial = { ...clientOptions(gateway, mesh.certificate, worker.name), minVersion: undefined };
    const old = { ...dial, maxVersion: "TLSv1.2" } as const;
    assert.deepEqual(await meet(serverOptions(worker, mesh.certificate), old), refusedByBoth);
  });

  it("names nobody on a socket that verified nobody", () => {
    const mismatch = (error: unknown): boolean => isSpaceError(error, "endpoint/mismatch");
    const socket = connect({ port: 9, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    assert(socket instanceof TLSSocket);
    assert.throws(() => peerName(socket), mismatch);
    assert.throws(() => peerThumbprint(socket), mismatch);
    socket.destroy();
  });
});

describe("the public edge", () => {
  const names = ["space.test", "*.space.test", "127.0.0.1"];
  const edge = createAuthority({ commonName: "edge", nowMs, permittedNames: names });
  const server = issueServer(edge, { commonName: "space.test", names, nowMs });

  const open = async (identity: typeof server, servername: string): Promise<string> =>
    (await meet(edgeOptions(identity), { ca: edge.certificate, servername })).atClient;

  it("serves callers that trust its authority under each of its names", async () => {
    assert.equal(await open(server, "api.space.test"), "space.test");
    assert.equal(await open(server, "49983-iabc.space.test"), "space.test");
    assert.equal(await open(server, "other.test"), "refused");
  });

  it("cannot vouch for names outside its domain, whoever holds its key", async () => {
    const forged = issueServer(edge, { commonName: "bank.test", names: ["bank.test"], nowMs });
    assert.equal(await open(forged, "bank.test"), "refused");
    const evil = issueServer(edge, { commonName: "x", names: ["evilspace.test", "10.0.0.1"], nowMs });
    assert.equal(await open(evil, "evilspace.test"), "refused");
  });

  it("is no way into the mesh, nor is the mesh a way into it", async () => {
    const asClient = issueClient(edge, { commonName: "gateway", nowMs });
    const dial = clientOptions(asClient, mesh.certificate, worker.name);
    assert.deepEqual(await meet(serverOptions(worker, mesh.certificate), dial), refusedByBoth);
    const inMesh = issuePeer(mesh, { commonName: "space.test", names: ["api.space.test"], nowMs });
    assert.equal(await open(inMesh, "api.space.test"), "refused");
  });
});
