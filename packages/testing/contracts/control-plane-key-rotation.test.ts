// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KeyRing } from "@space/capability";
import { isSpaceError } from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { openKeyRig } from "../src/key-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const minute = 60_000;
const code = (wanted: string) => (error: unknown) => isSpaceError(error) && error.code === wanted;

describe("the first start", () => {
  test("R-10: makes one key that signs, in bundle 1, and finds it again at the next start", async (context) => {
    const subject = await openKeyRig(context);
    assert.deepEqual(subject.states(), ["signing"]);
    const kid = subject.kid(0);
    assert.equal(await subject.signs(), kid);
    assert.equal(subject.rig.rootKey.uses, 1, "the root is asked for one signature");
    subject.rig.crash();
    subject.rig.rootKey.isHere = false;
    await subject.rig.start();
    assert.deepEqual([subject.states(), subject.kid(0)], [["signing"], kid]);
  });

  test("R-10: without the root key there is no first start", async (context) => {
    const { rig } = await openKeyRig(context, { workers: 0 });
    rig.crash();
    rig.privateKeys.texts.clear(); // the signing key's file is lost
    rig.rootKey.isHere = false;
    await assert.rejects(rig.start(), code("root-key/absent"));
  });

  test("a signing key whose file is lost is replaced, and what it signed is trusted for the overlap", async (context) => {
    const subject = await openKeyRig(context);
    subject.rig.crash();
    subject.rig.privateKeys.texts.clear();
    await subject.rig.start();
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
  });

  test("a crash after a key was made and before anybody heard of it leaves no key behind", async (context) => {
    const { rig } = await openKeyRig(context);
    rig.rootKey.isHere = false;
    await assert.rejects(rig.control.keys.rotate(), code("root-key/absent"));
    assert.equal(rig.privateKeys.texts.size, 1);
    assert.deepEqual((await rig.bundles()).length, 1);
  });
});

describe("rotation", () => {
  test("R-10: a new key signs at once when everybody holds it; the old one is trusted 180 s more, then removed", async (context) => {
    const subject = await openKeyRig(context);
    const { rig } = subject;
    assert.equal((await rig.control.keys.rotate()).state, "signing");
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
    assert.equal(await subject.signs(), subject.kid(1));
    assert.deepEqual(
      [...rig.privateKeys.texts.keys()],
      [subject.kid(1)],
      "the old private half is destroyed",
    );
    await rig.clock.advance(178_000);
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
    await rig.clock.advance(5_000);
    assert.deepEqual(subject.states(), ["removed", "signing"]);
    const ring = KeyRing.fromBundle(await rig.bundle(), rig.root.publicKey);
    assert.deepEqual(
      [...ring.entries()].map(([kid]) => kid),
      [subject.kid(1)],
    );
    for (const worker of subject.workers) assert.equal(worker.hello().bundleVersion, ring.version);
  });

  test("R-10: an overlap under 150 s is refused", async (context) => {
    await assert.rejects(ControlRig.open(context, { limits: { keyOverlapMs: 149_999 } }), TypeError);
  });

  test("R-10: a key does not sign before every worker has confirmed the bundle that holds it", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    const release = workers[1].hold("replaceKeys", "after");
    const rotating = rig.control.keys.rotate();
    await settle();
    assert.deepEqual(subject.states(), ["signing", "announced"]);
    assert.equal(await subject.signs(), subject.kid(0));
    release();
    await rotating;
    assert.equal(await subject.signs(), subject.kid(1));
  });

  test("R-10: a worker that refuses is asked again, and holds the rotation up", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    for (let round = 0; round < 3; round += 1) workers[0].loseAnswer("replaceKeys", "before");
    await rig.control.keys.rotate();
    assert.deepEqual(subject.states(), ["signing", "announced"], "the fault landed");
    await rig.clock.advance(5_000);
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
  });

  test("R-10, R-16: one that is away holds it up until its lease has run out; coming back it has the key before anything else", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    rig.detach(workers[1]);
    await rig.control.keys.rotate();
    await rig.clock.advance(64_000);
    assert.deepEqual(subject.states(), ["signing", "announced"]);
    await rig.clock.advance(2_000);
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
    await rig.attach(workers[1]);
    assert.equal(workers[1].hello().bundleVersion, 2);
  });

  test("R-10: a worker that joins while a key is announced does not miss it", async (context) => {
    const subject = await openKeyRig(context, { workers: 1 });
    const { rig, workers } = subject;
    const release = workers[1].hold("replaceKeys", "after");
    const joining = rig.attach(workers[1]);
    await settle();
    await rig.control.keys.rotate(); // the joining one is no receiver yet
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
    assert.equal(rig.control.workers().length, 1);
    release();
    await joining;
    await settle();
    assert.equal(workers[1].hello().bundleVersion, 2);
    assert.equal(rig.control.workers().length, 2);
  });

  test("R-10, R-16: one that has joined and has no lease yet gets the key before the lease", async (context) => {
    const subject = await openKeyRig(context, { workers: 1 });
    const { rig, workers } = subject;
    const { presence, detach } = rig.control.attach(workers[1].workerId, workers[1]);
    await presence.hello(workers[1].hello());
    workers[1].connected();
    await settle();
    assert.equal(workers[1].hello().bundleVersion, 1);
    await rig.control.keys.rotate(); // it may serve nobody, so nobody waits for it
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
    assert.equal(workers[1].hello().bundleVersion, 1, "the fault landed");
    void workers[1].renew(presence);
    await settle();
    assert.deepEqual([workers[1].hello().bundleVersion, rig.control.workers().length], [2, 2]);
    detach();
  });

  test("a second rotation while one is under way is the same one", async (context) => {
    const subject = await openKeyRig(context);
    subject.rig.detach(subject.workers[0]);
    const [first, second] = [
      await subject.rig.control.keys.rotate(),
      await subject.rig.control.keys.rotate(),
    ];
    assert.equal(first.kid, second.kid);
    assert.deepEqual(subject.states(), ["signing", "announced"]);
  });

  test("more keys than a bundle may hold are refused, and the next one is made when there is room", async (context) => {
    const subject = await openKeyRig(context);
    const { rig } = subject;
    for (let round = 0; round < 7; round += 1) await rig.control.keys.rotate();
    await assert.rejects(rig.control.keys.rotate(), code("signing-key/limit"));
    await rig.clock.advance(4 * minute);
    assert.equal((await rig.control.keys.rotate()).state, "signing");
  });

  test("R-10: a key is rotated when it is old enough, and goes on being rotated", async (context) => {
    const subject = await openKeyRig(context, { limits: { keyMaxAgeMs: 10 * minute } });
    await subject.rig.clock.advance(9 * minute);
    assert.deepEqual(subject.states(), ["signing"]);
    await subject.rig.clock.advance(2 * minute);
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
    await subject.rig.clock.advance(20 * minute);
    assert.deepEqual(
      subject.states(),
      ["removed", "removed", "retiring", "signing"].slice(-subject.states().length),
    );
  });

  test("R-10: with the root key elsewhere nothing stops but the rotation, which says so and goes on when it is back", async (context) => {
    const unasked = { leaseTickMs: minute, orderTickMs: minute }; // hours pass here, in which nobody is lost
    const subject = await openKeyRig(context, { limits: { keyMaxAgeMs: 10 * minute, ...unasked } });
    const { rig } = subject;
    rig.rootKey.isHere = false;
    await rig.clock.advance(30 * minute);
    assert.deepEqual(subject.states(), ["signing"]);
    assert.equal(await subject.signs(), subject.kid(0));
    const said = rig.audit.of("upkeep/failed").filter(({ task }) => task === "signing keys");
    assert.deepEqual([said.length, said[0]?.code], [1, "root-key/absent"]);
    await rig.clock.advance(60 * minute);
    assert.equal(rig.audit.of("upkeep/failed").filter(({ task }) => task === "signing keys").length, 2);
    rig.rootKey.isHere = true;
    await rig.clock.advance(2_000);
    assert.deepEqual(subject.states(), ["retiring", "signing"]);
  });

  test("incident 15: a wall clock that steps forward ends no overlap early", async (context) => {
    const subject = await openKeyRig(context);
    await subject.rig.control.keys.rotate();
    const before = subject.rig.clock.wallMs();
    subject.rig.clock.step(60 * minute);
    faultLanded("the wall clock went ahead of the monotonic one", subject.rig.clock.wallMs() - before);
    await subject.rig.clock.advance(100_000);
    assert.deepEqual(subject.states().slice(0, 2), ["retiring", "signing"]);
  });

  test("R-10: after a restart the overlap is counted anew, and an announced key still waits for everybody", async (context) => {
    const subject = await openKeyRig(context);
    const { rig, workers } = subject;
    await rig.control.keys.rotate();
    rig.detach(workers[0]);
    await rig.control.keys.rotate();
    assert.deepEqual(subject.states(), ["retiring", "signing", "announced"]);
    rig.crash();
    await rig.start();
    await rig.clock.advance(100);
    assert.deepEqual(subject.states(), ["retiring", "signing", "announced"]);
    for (const worker of workers) await rig.attach(worker);
    await rig.clock.advance(2_000);
    assert.deepEqual(subject.states(), ["retiring", "retiring", "signing"]);
    await rig.clock.advance(170_000);
    assert.deepEqual(subject.states(), ["retiring", "retiring", "signing"]);
    await rig.clock.advance(15_000);
    assert.deepEqual(subject.states(), ["removed", "removed", "signing"]);
  });
});
