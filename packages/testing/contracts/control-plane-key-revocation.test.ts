// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { claimedKeyId } from "@space/capability";
import { isSpaceError, SpaceError } from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { FakeGateway, openKeyRig } from "../src/key-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const minute = 60_000;
const code = (wanted: string) => (error: unknown) => isSpaceError(error) && error.code === wanted;

describe("revocation", () => {
  test("R-10: a retiring key is refused everywhere at once", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    await rig.control.keys.rotate();
    assert.equal((await rig.control.keys.revoke(subject.kid(0))).state, "revoked");
    assert.deepEqual(subject.states(), ["revoked", "signing"]);
    for (const worker of workers) assert.equal(worker.hello().bundleVersion, 3);
    assert.equal(rig.control.keys.view().isDelivered, true);
  });

  test("R-10: the key that signs is replaced before it is revoked", async (context) => {
    const subject = await openKeyRig(context);
    const { rig } = subject;
    const [kid, before] = [subject.kid(0), await subject.signs()];
    assert.equal(before, kid);
    assert.equal((await rig.control.keys.revoke(kid)).state, "revoked");
    assert.deepEqual(subject.states(), ["revoked", "signing"]);
    assert.equal(await subject.signs(), subject.kid(1));
    assert.equal((await rig.bundles()).length, 3);
  });

  test("R-10: an announced key that never signed may be revoked, and the next is another", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    rig.detach(workers[0]);
    await rig.control.keys.rotate();
    assert.equal((await rig.control.keys.revoke(subject.kid(1))).state, "revoked");
    assert.deepEqual(subject.states(), ["signing", "revoked"]);
    await rig.attach(workers[0]);
    assert.equal((await rig.control.keys.rotate()).state, "signing");
  });

  test("R-10: it reaches gateways first; workers keep the key until no gateway presents what it signed", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    const gateway = new FakeGateway(rig);
    await rig.control.attachGateway(gateway);
    await rig.control.keys.rotate();
    const { promise, resolve } = Promise.withResolvers<void>();
    gateway.gate = promise;
    const revoking = rig.control.keys.revoke(subject.kid(0));
    await settle();
    for (const worker of workers)
      assert.equal(worker.hello().bundleVersion, 2, "still the one with both keys");
    resolve();
    await revoking;
    assert.deepEqual(gateway.versions, [1, 2, 3]);
    for (const worker of workers) assert.equal(worker.hello().bundleVersion, 3);
  });

  test("R-10: a worker that dials in between does not get ahead of the gateways", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    const gateway = new FakeGateway(rig);
    await rig.control.attachGateway(gateway);
    await rig.control.keys.rotate();
    gateway.problem = new SpaceError("store/failed", { step: "bundle" });
    await rig.control.keys.revoke(subject.kid(0));
    rig.detach(workers[0]);
    await rig.attach(workers[0]);
    assert.equal(workers[0].hello().bundleVersion, 2);
    assert.equal(rig.control.keys.view().isDelivered, false);
    gateway.problem = undefined;
    await rig.clock.advance(2_000);
    assert.equal(workers[0].hello().bundleVersion, 3);
    assert.equal(rig.control.keys.view().isDelivered, true);
  });

  test("R-10: a gateway that stays silent holds a revocation up for 65 s, not for ever", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    const gateway = new FakeGateway(rig);
    await rig.control.attachGateway(gateway);
    await rig.control.keys.rotate();
    gateway.problem = new SpaceError("store/failed", { step: "bundle" });
    await rig.control.keys.revoke(subject.kid(0));
    await rig.clock.advance(60_000);
    assert.equal(workers[0].hello().bundleVersion, 2, "the fault landed");
    await rig.clock.advance(7_000);
    assert.equal(workers[0].hello().bundleVersion, 3);
  });

  test("R-10: what is asked for without the root key is done when it is there, also after a restart", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    rig.rootKey.isHere = false;
    await assert.rejects(rig.control.keys.revoke(subject.kid(0)), code("root-key/absent"));
    assert.deepEqual(subject.states(), ["signing"]);
    rig.crash();
    await rig.start();
    for (const worker of workers) await rig.attach(worker);
    rig.rootKey.isHere = true;
    await rig.clock.advance(3_000);
    assert.deepEqual(subject.states(), ["revoked", "signing"]);
  });

  test("a key that has ended, or never was, is refused with its state", async (context) => {
    const subject = await openKeyRig(context);
    const { rig } = subject;
    await rig.control.keys.rotate();
    await rig.control.keys.revoke(subject.kid(0));
    await assert.rejects(rig.control.keys.revoke(subject.kid(0)), code("signing-key/state"));
    await assert.rejects(rig.control.keys.revoke("x".repeat(43)), code("signing-key/unknown"));
  });

  test("every step is in the audit log, and no private key is", async (context) => {
    const subject = await openKeyRig(context);
    const { rig } = subject;
    await rig.control.keys.rotate();
    await rig.control.keys.revoke(subject.kid(0));
    assert.deepEqual(
      rig.audit.of("signing-key/changed").map(({ change, state, bundle }) => [change, state, bundle]),
      [
        ["announce", "announced", 1],
        ["promote", "signing", 1],
        ["announce", "announced", 2],
        ["promote", "signing", 2],
        ["ask-revocation", "retiring", 2],
        ["end", "revoked", 3],
      ],
    );
    const secrets = [...rig.privateKeys.texts.values()].map((pem) => pem.split("\n")[1] ?? "");
    const written = JSON.stringify(rig.audit);
    assert.ok(secrets.every((secret) => secret.length > 20 && !written.includes(secret)));
  });
});

describe("what old keys signed", () => {
  test("incident 30: a paused sandbox resumes, and its chain verifies, long after its keys were removed", async (context) => {
    const subject = await openKeyRig(context);
    const { rig } = subject;
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, false);
    const first = subject.kid(0);
    await rig.control.keys.rotate();
    await rig.clock.advance(5 * minute);
    await rig.control.keys.rotate();
    await rig.control.keys.revoke(subject.kid(1));
    assert.deepEqual(subject.states(), ["removed", "revoked", "signing"]);
    faultLanded("the keys that signed it do not count any more", subject.states().indexOf("signing"));
    const back = await rig.connect(sandboxId);
    assert.equal(back.generation, 2n);
    const { certificates } = await rig.sandboxes.chain(sandboxId);
    assert.deepEqual(certificates.map(claimedKeyId), [subject.kid(2), first]);
  });

  test("incident 30, 35: a worker that was away for an hour is told everything under keys that it can verify", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    const { sandboxId } = await rig.create({ workerId: workers[0].workerId });
    rig.detach(workers[0]);
    await rig.service.kill(rig.caller, sandboxId);
    assert.equal(workers[0].processes, 1, "the retirement did not arrive");
    for (let round = 0; round < 3; round += 1) {
      await rig.control.keys.rotate();
      await rig.clock.advance(20 * minute);
    }
    assert.deepEqual(subject.states(), ["removed", "removed", "removed", "signing"]);
    faultLanded(
      "every key that it knew is gone",
      workers[0].hello().bundleVersion === 1 ? subject.states().length : 0,
    );
    await rig.attach(workers[0]);
    await rig.clock.advance(1_000);
    assert.equal(workers[0].processes, 0, "retired by a key that it had never heard of");
    const next = await rig.create({ workerId: workers[0].workerId });
    assert.notEqual(workers[0].serving(next.sandboxId), undefined);
  });
});
