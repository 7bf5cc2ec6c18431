// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { importPublicKey, manifestDigest, verifyManifest } from "@space/capability";
import { type ActivateRequest, SpaceError } from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { otherKey, testTenantKey } from "../src/sealed-objects.ts";
import { resume, working } from "../src/working-worker.ts";

const code = (expected: string) => ({ code: expected });

describe("snapshot", () => {
  test("flushes, freezes, and signs with the execution's own key what is durable", async () => {
    const { rig, identity, process } = await working();
    const { manifest, signed } = await rig.snapshot(identity);
    assert.deepEqual(rig.bridge.calls.slice(-1), ["quiesce"]);
    assert.deepEqual(rig.daemon.substrate.calls.slice(-2), ["freeze", "snapshot"]);
    assert.equal(process.state, "frozen");
    const record = rig.disk.records.get(identity.sandboxId);
    const held = rig.daemon.store.readActivation(identity.activation.id);
    assert.deepEqual(verifyManifest(signed, importPublicKey(held?.publicKey ?? "")), manifest);
    assert.deepEqual(manifest.identity, identity);
    assert.equal(manifest.certificate, record?.certificateDigest);
    assert.equal(manifest.memory, "frozen-on-worker");
    assert.equal(manifest.keyId, testTenantKey.keyId);
    for (const { digest } of manifest.filesystem) assert.ok(await rig.objects.keeps(digest));
    assert.ok(await rig.objects.keeps(manifestDigest(signed)));
    assert.ok(await rig.objects.keeps(manifest.chain));
  });

  test("is safe to repeat: the same manifest, made once; following another one it is refused", async () => {
    const { rig, identity } = await working();
    const [first, again] = await Promise.all([rig.snapshot(identity), rig.snapshot(identity)]);
    assert.deepEqual(again, first);
    assert.equal(rig.daemon.substrate.calls.filter((step) => step === "snapshot").length, 1);
    const { previousManifest, chain } = first.manifest;
    const key = testTenantKey;
    for (const [follows, sealedWith] of [
      [{ previousManifest: manifestDigest(first.signed), chain }, key],
      [{ previousManifest, chain: manifestDigest("another chain") }, key],
      [{ previousManifest, chain }, otherKey],
    ] as const)
      await assert.rejects(
        rig.worker.control.snapshot(identity, follows, sealedWith),
        code("snapshot/refused"),
      );
  });

  test("one that failed goes on where it stopped; the guest stays frozen meanwhile", async () => {
    const { rig, identity, process } = await working();
    await rig.chains.seal(identity.sandboxId);
    rig.store.beforePut = () => {
      throw new SpaceError("store/failed", { step: "put" });
    };
    await assert.rejects(rig.snapshot(identity), code("store/failed"));
    assert.equal(process.state, "frozen");
    rig.store.beforePut = () => undefined;
    await rig.snapshot(identity);
    assert.equal(rig.bridge.calls.filter((call) => call === "quiesce").length, 1);
  });

  test("only of the identity that is installed and runs", async () => {
    const { rig, identity } = await working();
    const other = rig.identity();
    await assert.rejects(rig.snapshot(other), code("record/absent"));
    await assert.rejects(rig.snapshot(resume(rig, identity)), code("record/stale"));
    await rig.worker.control.retire(rig.authority.retirement(identity), null);
    await assert.rejects(rig.snapshot(identity), code("record/stale"));
  });

  test("an execution that ends meanwhile is reported, and not said to be paused", async () => {
    const { rig, identity } = await working();
    rig.daemon.substrate.beforeStep = (step, id) => {
      if (step === "freeze" && id !== undefined) rig.machine.end(id, "out of memory");
    };
    await assert.rejects(rig.snapshot(identity), code("substrate/failed"));
    assert.deepEqual(
      rig.audit.of("execution/exited").map(({ reason }) => reason),
      ["out of memory"],
    );
    await assert.rejects(rig.worker.control.abortPause(identity), code("substrate/failed"));
  });
});

describe("abort", () => {
  test("incident 31: after an abort the guest really runs and is admitted to, under the same identity", async () => {
    const { rig, identity, process } = await working();
    await rig.snapshot(identity);
    assert.equal((await rig.ask(identity)).status, 421);
    faultLanded("it was frozen when its pause was given up", Number(process.state === "frozen"));
    await rig.worker.control.abortPause(identity);
    assert.equal(process.state, "running");
    assert.equal((await rig.ask(identity)).body, "memory=counting files=a file system of several chunks");
    const { epoch } = rig.disk.records.get(identity.sandboxId) ?? assert.fail("installed");
    await rig.worker.control.abortPause(identity);
    assert.equal(rig.disk.records.get(identity.sandboxId)?.epoch, epoch, "repeated, it changes nothing");
    await rig.snapshot(identity);
    assert.equal(process.state, "frozen", "and can be paused again");
  });

  test("one that fails admits nobody, and may be repeated", async () => {
    const { rig, identity, process } = await working();
    await rig.snapshot(identity);
    rig.daemon.substrate.beforeStep = (step) => {
      if (step === "thaw") throw new SpaceError("substrate/failed", { step });
    };
    await assert.rejects(rig.worker.control.abortPause(identity), code("substrate/failed"));
    assert.equal((await rig.ask(identity)).status, 421);
    rig.daemon.substrate.beforeStep = () => undefined;
    await rig.worker.control.abortPause(identity);
    assert.equal(process.state, "running");
    assert.equal((await rig.ask(identity)).status, 200);
  });

  test("one whose bridge is away loses nothing: it is asked again, and the guest runs for the next bridge", async () => {
    const { rig, identity, process } = await working();
    await rig.snapshot(identity);
    rig.bridge.restart();
    await rig.clock.advance(1000); // the next one does not know the guest, which is frozen
    rig.bridge.beforeCommand = () => {
      throw new SpaceError("link/closed", {});
    };
    rig.bridge.dropLinks();
    await rig.clock.advance(1000);
    faultLanded("no bridge is there", Number(!rig.worker.stats().bridgeConnected));
    await assert.rejects(rig.worker.control.abortPause(identity), code("link/closed"));
    assert.equal((await rig.ask(identity)).status, 421);
    rig.bridge.beforeCommand = () => undefined;
    await rig.clock.advance(60_000);
    await rig.worker.control.abortPause(identity);
    assert.equal(process.state, "running");
    assert.equal((await rig.ask(identity)).status, 200);
  });

  test("after the commit this generation never runs again", async () => {
    const { rig, identity, process } = await working();
    await rig.pause(identity, true);
    await assert.rejects(rig.worker.control.abortPause(identity), code("record/stale"));
    assert.equal(process.state, "frozen");
  });
});

describe("resume on the same worker", () => {
  test("with its memory: the same processes under a new identity, key and secret (R-3)", async () => {
    const { rig, identity, process } = await working();
    const [oldSecret, oldKey] = [process.secret, rig.disk.activations.get(identity.activation.id)?.publicKey];
    const from = await rig.pause(identity, true);
    assert.deepEqual(rig.worker.inventory(), {
      installed: [],
      frozen: [{ sandboxId: identity.sandboxId, manifest: from.digest }],
    });
    const next = resume(rig, identity);
    const request = rig.request(next, { from });
    const answer = await rig.worker.control.activate(request);
    assert.equal(answer.memory, true);
    assert.notEqual(answer.publicKey, oldKey);
    assert.equal(process.activationId, next.activation.id);
    assert.notDeepEqual(process.secret, oldSecret);
    assert.equal((await rig.ask(next)).status, 421, "not before the install");
    assert.deepEqual(await rig.worker.control.activate(request), answer);
    await rig.run(next, { from });
    assert.match((await rig.ask(next)).body, /memory=counting/);
    assert.equal((await rig.ask(identity)).status, 421);
    assert.deepEqual(rig.worker.inventory(), { installed: [next], frozen: [] });
    await rig.pause(next, true);
    assert.equal(process.state, "frozen", "and can be paused again");
  });

  test("from the files alone when that is asked for, or when the memory is gone; the answer says so", async () => {
    for (const how of ["asked", "gone", "discarded"] as const) {
      const { rig, identity } = await working();
      const from = await rig.pause(identity, true);
      if (how === "gone") rig.machine.end(identity.activation.id, "out of memory");
      if (how === "discarded") await rig.worker.control.discard(identity.sandboxId, from.digest);
      const next = resume(rig, identity);
      const request = how === "asked" ? { from: { ...from, memory: "none" as const } } : { from };
      assert.equal((await rig.worker.control.activate(rig.request(next, request))).memory, false);
      await rig.run(next, request);
      assert.equal((await rig.ask(next)).body, "memory= files=a file system of several chunks");
      assert.deepEqual([...rig.machine.processes.keys()], [next.activation.id], how);
    }
  });

  test("a process that refuses its new identity never goes on; the files do", async () => {
    const { rig, identity, process } = await working();
    const from = await rig.pause(identity, true);
    rig.bridge.beforeCommand = (command) => {
      if (command === "rekey") throw new SpaceError("endpoint/mismatch", { problem: "rekey" });
    };
    const next = resume(rig, identity);
    assert.equal((await rig.worker.control.activate(rig.request(next, { from }))).memory, false);
    assert.ok(![...rig.machine.processes.values()].includes(process));
  });

  test("without keeping, the processes end with the retirement; under another digest too", async () => {
    const { rig, identity } = await working();
    await rig.pause(identity, false);
    assert.equal(rig.machine.processes.size, 0);
    const again = rig.identity();
    await rig.run(again);
    await rig.snapshot(again);
    await rig.worker.control.retire(
      rig.authority.retirement(again),
      "e".repeat(64) as NonNullable<ActivateRequest["from"]>["digest"],
    );
    assert.equal(rig.machine.processes.size, 0);
    assert.deepEqual(rig.worker.inventory(), { installed: [], frozen: [] });
  });
});
