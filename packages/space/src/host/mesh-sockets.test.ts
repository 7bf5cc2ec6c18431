// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { connect } from "node:tls";
import { type AuditFields, parseWorkerId, SpaceError } from "@space/model";
import { createAuthority, issuePeer, type TlsIdentity } from "@space/mtls";
import { MeshDialler } from "./mesh-dialler.ts";
import { listenMesh, type MeshPeer, portOf } from "./mesh-sockets.ts";
import { systemClock } from "./system-clock.ts";

const nowMs = Date.now();
const authority = createAuthority({ commonName: "mesh", nowMs });
const stranger = createAuthority({ commonName: "mesh", nowMs });
const member = (name: string, by = authority): TlsIdentity => issuePeer(by, { commonName: name, nowMs });
const listener = { identity: member("control-plane"), authorityCertificate: authority.certificate };

const refusals: AuditFields["mesh/refused"][] = [];
const refusal = Promise.withResolvers<void>();
let next = refusal;
const entered: string[] = [];
const server = await listenMesh(
  listener,
  { host: "127.0.0.1", port: 0 },
  {
    onPeer: (socket, { name }: MeshPeer) => {
      if (name === "lost") throw new SpaceError("endpoint/mismatch", { problem: "no business here" });
      parseWorkerId(name);
      entered.push(name);
      socket.end();
    },
    audit: {
      record: (name, fields) => {
        assert.equal(name, "mesh/refused");
        refusals.push(fields as AuditFields["mesh/refused"]); // cast: the name was just compared
        next.resolve();
      },
    },
  },
);
after(() => server.close());

/** Dials with this identity, or none, and waits until the refusal is recorded. */
async function refusedDial(identity: TlsIdentity | undefined): Promise<AuditFields["mesh/refused"]> {
  next = Promise.withResolvers<void>();
  const shown = identity && { cert: identity.certificate, key: identity.key.reveal() };
  const socket = connect({
    ...shown,
    host: "127.0.0.1",
    port: portOf(server),
    ca: authority.certificate,
    checkServerIdentity: () => undefined,
  });
  socket.on("error", () => undefined);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await Promise.all([next.promise, closed]);
  const recorded = refusals.at(-1);
  assert.ok(recorded);
  assert.match(recorded.peer, /^127\.0\.0\.1:\d+$|^unknown$/);
  return recorded;
}

test("whoever is not let in on a private hop is cut off and recorded (incident 36)", async () => {
  assert.equal((await refusedDial(undefined)).problem, "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE");
  const forged = await refusedDial(member("wrk_aaaaaaaaaaaaaaaa", stranger));
  assert.equal(forged.problem, "UNABLE_TO_VERIFY_LEAF_SIGNATURE");
  assert.equal((await refusedDial(member("lost"))).problem, "no business here");
  const gateway = await refusedDial(member("gateway"));
  assert.equal(gateway.problem, "the peer is no component that may dial here");
  assert.deepEqual([refusals.length, entered], [4, []]);
});

test("a member of the mesh enters unrecorded, and refuses and records a listener of another name (incident 36)", async () => {
  const before = refusals.length;
  const worker = { identity: member("wrk_bbbbbbbbbbbbbbbb"), authorityCertificate: authority.certificate };
  const place = { host: "127.0.0.1", port: portOf(server) };
  const misdialled: AuditFields["mesh/misdialled"][] = [];
  let nowMs = 0;
  const dialler = new MeshDialler({
    audit: {
      record: (name, fields) => {
        assert.equal(name, "mesh/misdialled");
        misdialled.push(fields as AuditFields["mesh/misdialled"]); // cast: the name was just compared
      },
    },
    clock: { ...systemClock, monotonicMs: () => nowMs },
  });
  const socket = await dialler.dial(worker, { ...place, name: "control-plane" });
  await once(socket.resume(), "close");
  assert.deepEqual([entered, refusals.length], [["wrk_bbbbbbbbbbbbbbbb"], before]);
  assert.deepEqual(misdialled, []);

  const mistaken = (): Promise<void> =>
    assert.rejects(dialler.dial(worker, { ...place, name: "gateway" }), { code: "endpoint/mismatch" });
  const expected = {
    name: "gateway",
    problem: "the certificate is of another component",
    peer: `127.0.0.1:${place.port}`,
  };
  await mistaken();
  nowMs = 59_999;
  await mistaken();
  assert.deepEqual(misdialled, [expected], "the same again within a minute is one event");
  nowMs = 60_000;
  await mistaken();
  assert.deepEqual(misdialled, [expected, expected]);

  const foreign = { ...worker, authorityCertificate: stranger.certificate };
  await assert.rejects(dialler.dial(foreign, { ...place, name: "control-plane" }), {
    code: "endpoint/mismatch",
  });
  assert.deepEqual(misdialled.slice(2), [
    { ...expected, name: "control-plane", problem: "SELF_SIGNED_CERT_IN_CHAIN" },
  ]);
  await assert.rejects(dialler.dial(worker, { ...place, port: 1, name: "control-plane" }), {
    code: "link/closed",
  });
  assert.equal(misdialled.length, 3, "nobody answered: nobody to record");
});
