// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { createServer, type Server } from "node:tls";
import { createWorkerLinks, defaultWorkerLinkLimits } from "@space/gateway";
import { isSpaceError, newWorkerId, type WorkerId } from "@space/model";
import { createAuthority, dialPeer, issuePeer, peerName, serverOptions } from "@space/mtls";
import { faultLanded } from "../src/fault-landed.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { VirtualClock } from "../src/virtual-clock.ts";
import { verdictOf, WorkerRig } from "../src/worker-rig.ts";

const nowMs = Date.now();
const mesh = createAuthority({ commonName: "mesh", nowMs });
const stranger = createAuthority({ commonName: "mesh", nowMs });
const random = new SeededRandom("addresses");

/** One that listens at the port under this name, and counts what it gets. */
class Listener implements AsyncDisposable {
  connections = 0;
  handshakes = 0;
  bytes = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(name: string, authority = mesh) {
    const identity = issuePeer(authority, { commonName: name, nowMs });
    this.#server = createServer(serverOptions(identity, authority.certificate), (socket) => {
      this.handshakes += 1;
      socket
        .on("error", () => undefined)
        .on("data", (chunk: Buffer) => {
          this.bytes += chunk.length;
        });
    });
    this.#server.on("connection", (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
    });
    this.#server.on("tlsClientError", () => undefined);
  }

  static async at(port: number, name: string, authority = mesh): Promise<Listener> {
    const listener = new Listener(name, authority);
    listener.#server.listen(port, "127.0.0.1");
    await once(listener.#server, "listening");
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // cast: it listens on TCP
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** The gateway's links as they are, over real sockets. */
function gatewayLinks() {
  const identity = issuePeer(mesh, { commonName: "gateway", nowMs });
  const clock = new VirtualClock();
  return createWorkerLinks(
    { ...defaultWorkerLinkLimits, dialPauseMs: 0 },
    {
      clock,
      dial: ({ workerId: expectedName, host, port }, signal) =>
        dialPeer({ host, port, expectedName, identity, authorityCertificate: mesh.certificate }, signal),
    },
  );
}

test("incident 3: whoever has a worker's address now is not that worker, and gets no byte of an operation", async () => {
  const [gone, other]: readonly [WorkerId, WorkerId] = [newWorkerId(random), newWorkerId(random)];
  let port = 0;
  {
    await using first = await Listener.at(0, gone);
    port = first.port;
    const links = gatewayLinks();
    await links.link({ workerId: gone, host: "127.0.0.1", port });
    faultLanded("the worker was reached at its address before", first.connections);
    links.close();
  }
  await using recycled = await Listener.at(port, other);
  const links = gatewayLinks();
  await assert.rejects(
    links.link({ workerId: gone, host: "127.0.0.1", port }),
    (error) => isSpaceError(error, "worker/unreachable") && isSpaceError(error.cause, "endpoint/mismatch"),
  );
  faultLanded("another worker was dialled at the same address", recycled.connections);
  assert.equal(recycled.bytes, 0);
  const asItself = await links.link({ workerId: other, host: "127.0.0.1", port });
  assert.equal(asItself.closed, false);
  links.close();
});

test("incident 3: an operation that reaches another worker, or another sandbox's, is not served there", async () => {
  const [here, there] = [new WorkerRig("here"), new WorkerRig("there")];
  for (const rig of [here, there]) await rig.boot();
  const meant = here.identity();
  await here.run(meant);
  const neighbour = there.identity();
  await there.run(neighbour);
  const link = there.gateway();
  const before = there.audit.of("admission/refreshed").length + there.audit.of("admission/denied").length;
  // By the address of before: another worker, whose control plane is the same.
  const capability = there.authority.capability({ identity: meant, presenter: there.presenter });
  const strayed = await there.send(link, there.head(meant, { capability }));
  // By a host port that has been given to the neighbour meanwhile: the target says one sandbox, the capability the other.
  const crossed = await there.send(link, there.head(neighbour, { capability }));
  assert.deepEqual([verdictOf(strayed), verdictOf(crossed)], ["refresh-route", "deny"]);
  const after = there.audit.of("admission/refreshed").length + there.audit.of("admission/denied").length;
  faultLanded("both reached the worker at the recycled address", Math.max(0, after - before - 1));
  assert.deepEqual(there.bridge.operations, [], "no byte was forwarded");
});

test("incident 36: a worker is spoken to only when it proves its name by the mesh's own authority, and so is its caller", async () => {
  const worker = newWorkerId(random);
  await using forged = await Listener.at(0, worker, stranger);
  const links = gatewayLinks();
  const refused = links.link({ workerId: worker, host: "127.0.0.1", port: forged.port });
  await assert.rejects(refused, (error) => isSpaceError(error, "worker/unreachable"));
  faultLanded("one that shows the worker's name under another authority was dialled", forged.connections);
  assert.deepEqual([forged.handshakes, forged.bytes], [0, 0]);

  await using real = await Listener.at(0, worker);
  const dial = {
    host: "127.0.0.1",
    port: real.port,
    expectedName: worker,
    authorityCertificate: mesh.certificate,
  };
  const intruder = issuePeer(stranger, { commonName: "gateway", nowMs });
  // TLS 1.3: a client's certificate is looked at after its side of the handshake, so the refusal comes as the end.
  const ended = await dialPeer({ ...dial, identity: intruder }, new AbortController().signal).then(
    (socket) => once(socket.on("error", () => undefined).resume(), "close").then(() => "cut off"),
    () => "refused",
  );
  assert.match(ended, /cut off|refused/);
  faultLanded("a caller of another authority dialled the worker", real.connections);
  assert.equal(real.handshakes, 0);
  const identity = issuePeer(mesh, { commonName: "gateway", nowMs });
  const socket = await dialPeer({ ...dial, identity }, new AbortController().signal);
  assert.equal(peerName(socket), worker);
  socket.destroy();
  await once(socket, "close");
});
