// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  importPublicKey,
  manifestDigest,
  newSigningKey,
  signManifest,
  verifyManifest,
} from "@space/capability";
import { type ActivateRequest, type ExecutionIdentity, isSpaceError, SpaceError } from "@space/model";
import type { FakeProcess } from "../src/fake-machine.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { WorkerRig } from "../src/worker-rig.ts";

const code = (expected: string) => ({ code: expected });

async function working(
  rig = new WorkerRig(),
): Promise<{ rig: WorkerRig; identity: ExecutionIdentity; process: FakeProcess }> {
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  const process = rig.machine.processes.get(identity.activation.id) ?? assert.fail("it runs");
  process.memory = "counting";
  process.files = "a file system of several chunks";
  return { rig, identity, process };
}

/** Of what is not the newest snapshot of this sandbox, or not shown to be. */
const refusedSnapshot = (error: unknown): boolean =>
  isSpaceError(error, "snapshot/refused") || isSpaceError(error, "snapshot/chain-refused");

type From = NonNullable<ActivateRequest["from"]>;

const resume = (rig: WorkerRig, identity: ExecutionIdentity): ExecutionIdentity =>
  rig.identity({ sandboxId: identity.sandboxId, generation: Number(identity.generation) + 1 });

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
    for (const { digest } of manifest.filesystem) assert.ok(rig.objects.objects.has(digest));
    assert.ok(rig.objects.objects.has(manifestDigest(signed)));
    assert.ok(rig.objects.objects.has(manifest.chain));
  });

  test("is safe to repeat: the same manifest, made once; following another one it is refused", async () => {
    const { rig, identity } = await working();
    const [first, again] = await Promise.all([rig.snapshot(identity), rig.snapshot(identity)]);
    assert.deepEqual(again, first);
    assert.equal(rig.daemon.substrate.calls.filter((step) => step === "snapshot").length, 1);
    const { previousManifest, chain } = first.manifest;
    for (const follows of [
      { previousManifest: manifestDigest(first.signed), chain },
      { previousManifest, chain: manifestDigest("another chain") },
    ])
      await assert.rejects(rig.worker.control.snapshot(identity, follows), code("snapshot/refused"));
  });

  test("one that failed goes on where it stopped; the guest stays frozen meanwhile", async () => {
    const { rig, identity, process } = await working();
    await rig.chains.seal(identity.sandboxId);
    rig.objects.beforePut = () => {
      throw new SpaceError("store/failed", { step: "put" });
    };
    await assert.rejects(rig.snapshot(identity), code("store/failed"));
    assert.equal(process.state, "frozen");
    rig.objects.beforePut = () => undefined;
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
    await rig.worker.control.retire(rig.authority.retirement(again), "e".repeat(64) as From["digest"]);
    assert.equal(rig.machine.processes.size, 0);
    assert.deepEqual(rig.worker.inventory(), { installed: [], frozen: [] });
  });
});

describe("resume on another worker", () => {
  async function moved(): Promise<{
    rig: WorkerRig;
    other: WorkerRig;
    identity: ExecutionIdentity;
    from: From;
  }> {
    const { rig, identity } = await working();
    const from = await rig.pause(identity, false);
    const other = new WorkerRig("another worker", rig.objects);
    other.leasedBy = rig.authority;
    await other.boot({
      worker: { rootPublicKey: rig.authority.rootPublicKey },
      prepare: ({ store }) => store.writeBundle(1, rig.authority.bundle()),
    });
    return { rig, other, identity, from };
  }
  const activate = (other: WorkerRig, identity: ExecutionIdentity, from: From): Promise<unknown> =>
    other.worker.control.activate(other.request(resume(other, identity), { from }));

  test("the files are there, byte for byte", async () => {
    const { other, identity, from } = await moved();
    assert.deepEqual(Object.keys((await activate(other, identity, from)) as object), ["publicKey", "memory"]);
    const [process] = other.machine.processes.values();
    assert.equal(process?.files, "a file system of several chunks");
  });

  test("a missing or damaged chunk is refused, and nothing is left behind", async () => {
    const { other, identity, from } = await moved();
    const { digest } = from.manifest.filesystem[1] ?? assert.fail("there are several chunks");
    const whole = other.objects.objects.get(digest) ?? assert.fail("it is there");
    other.objects.objects.set(digest, Buffer.from("damaged!"));
    await assert.rejects(activate(other, identity, from), code("snapshot/refused"));
    other.objects.objects.delete(digest);
    await assert.rejects(activate(other, identity, from), code("snapshot/missing"));
    assert.equal(other.machine.processes.size, 0);
    other.objects.objects.set(digest, whole);
    await activate(other, identity, from);
  });

  test("a manifest that differs from the signed one is refused: reordered, shortened, or of another sandbox", async () => {
    const { other, identity, from } = await moved();
    const { manifest } = from;
    for (const altered of [
      { ...manifest, filesystem: manifest.filesystem.toReversed() },
      { ...manifest, filesystem: manifest.filesystem.slice(1) },
      { ...manifest, memory: "none" as const },
      { ...manifest, createdAtSeconds: 1 },
    ]) {
      await assert.rejects(
        activate(other, identity, { ...from, manifest: altered }),
        code("snapshot/refused"),
      );
    }
    await assert.rejects(
      activate(other, other.identity(), from),
      code("snapshot/chain-refused"),
      "another sandbox",
    );
    assert.equal(other.machine.processes.size, 0);
  });

  test("R-5, incident 33: a manifest that the signed head of the chain does not name is refused", async () => {
    const { rig, other, identity, from } = await moved();
    const { certificate } = from.manifest;
    let refused = 0;
    for (const head of [
      rig.headOf(from.manifest, manifestDigest("a newer one")),
      rig.headOf(from.manifest, null),
      rig.authority.head({ sandboxId: other.identity().sandboxId, certificate, manifest: from.digest }),
      rig.headOf(from.manifest, from.digest, newSigningKey()),
      from.head.slice(1),
      "",
    ]) {
      await assert.rejects(activate(other, identity, { ...from, head }), refusedSnapshot, head);
      refused += 1;
    }
    faultLanded("a head of each other kind was given with it", refused - 5);
    assert.equal(other.machine.processes.size, 0);
  });

  test("R-10, incident 30: a snapshot whose certificate was signed by a key that is gone is restored all the same", async () => {
    const { rig, other, identity, from } = await moved();
    const next = newSigningKey();
    await other.worker.control.replaceKeys(rig.authority.bundle(2, [next]));
    await assert.rejects(
      activate(other, identity, from),
      code("snapshot/refused"),
      "the head is of the old key",
    );
    const replaced = other.audit.of("keys/replaced").filter(({ version }) => version === 2);
    faultLanded("the key that signed its certificate is not trusted any more", replaced.length);
    const head = rig.headOf(from.manifest, from.digest, next);
    await activate(other, identity, { ...from, head });
    assert.equal(other.machine.processes.size, 1);
  });

  test("a manifest of no earlier generation is refused", async () => {
    const { other, identity, from } = await moved();
    const same = other.identity({ sandboxId: identity.sandboxId, generation: 1 });
    await assert.rejects(
      other.worker.control.activate(other.request(same, { from })),
      code("snapshot/refused"),
    );
  });

  test("a manifest that the execution's certified key has not signed is refused", async () => {
    const { rig, other, identity, from } = await moved();
    const signed = signManifest(newSigningKey(), from.manifest);
    const forged = rig.sourceOf({ manifest: from.manifest, signed });
    await other.objects.put(forged.digest, Buffer.from(signed));
    await assert.rejects(activate(other, identity, forged), code("snapshot/refused"));
    await other.objects.put(manifestDigest("nonsense"), Buffer.from("nonsense"));
    const digest = manifestDigest("nonsense");
    const nonsense = { ...from, digest, head: rig.headOf(from.manifest, digest) };
    await assert.rejects(activate(other, identity, nonsense), code("snapshot/refused"));
    const nowhere = manifestDigest("nowhere");
    const unknown = { ...from, digest: nowhere, head: rig.headOf(from.manifest, nowhere) };
    await assert.rejects(activate(other, identity, unknown), code("snapshot/missing"));
  });
});
