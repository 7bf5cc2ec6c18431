// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  countersignManifest,
  importSigningKey,
  KeyArchive,
  manifestDigest,
  newSigningKey,
  readVouchedManifest,
  SealedChains,
  type SealedEnd,
  signManifest,
  verifyCountersigned,
} from "@space/capability";
import {
  type ActivateRequest,
  type Digest,
  type ExecutionIdentity,
  isSpaceError,
  manifestVersion,
  newTenantKeyId,
  type SandboxId,
  SpaceError,
} from "@space/model";
import { ControlRig } from "../src/control-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { testTenantKey } from "../src/sealed-objects.ts";

/** What the store names as the newest snapshot's manifest. */
async function newest(rig: ControlRig, sandboxId: SandboxId): Promise<{ chain: Digest; digest: Digest }> {
  const { snapshot } = await rig.record(sandboxId);
  assert.ok(snapshot);
  const stored = await rig.sandboxes.manifest(sandboxId, snapshot.digest);
  const archive = KeyArchive.fromBundles(await rig.bundles(), rig.root.publicKey);
  const signed = verifyCountersigned(stored?.countersigned ?? "", archive);
  return { chain: readVouchedManifest(signed, snapshot.digest).chain, digest: snapshot.digest };
}

/** Verified by somebody who has the objects and the root's public key, and nothing else; and how many were read for it. */
async function open(rig: ControlRig, chain: Digest): Promise<SealedEnd & { reads: number }> {
  let reads = 0;
  const sealed = await rig.sealed();
  const end = await new SealedChains({ root: rig.root.publicKey }).open(chain, (digest) => {
    reads += 1;
    return sealed.get(digest);
  });
  return { ...end, reads };
}

const sizes = (rig: ControlRig): readonly number[] =>
  [...rig.store.held].flatMap(([key, { bytes }]) => (key.startsWith("chunks/") ? [bytes.length] : []));

describe("sealing", () => {
  test("R-5: 66 pauses, each with its whole history, verified with the root alone; none costs more than the others", async (context) => {
    const { rig } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    const written: number[] = [];
    for (let pauses = 1; pauses <= 66; pauses += 1) {
      const before = sizes(rig).length;
      await rig.service.pause(rig.caller, sandboxId, pauses % 2 === 0);
      const added = sizes(rig).slice(before);
      assert.equal(added.length, 1, "one object for each pause");
      written.push(added[0] ?? 0);
      if (pauses === 20 || pauses > 63) {
        const { chain } = await newest(rig, sandboxId);
        const end = await open(rig, chain);
        assert.equal(end.certificate.certificate.identity.generation, BigInt(pauses));
        assert.equal(end.links, 2 * pauses - 1);
        assert.ok(end.reads <= 32 + pauses / 32, `${end.reads} objects`);
      }
      await rig.connect(sandboxId);
    }
    const folds = written.filter((size) => size > 20_000);
    assert.equal(folds.length, 2, "every 32nd takes the place of those before it");
    assert.ok(Math.max(...written) < 150_000, String(Math.max(...written)));
    const added = written.filter((size) => !folds.includes(size)).slice(1);
    assert.ok(Math.max(...added) - Math.min(...added) < 300, "the others are all alike");
    assert.equal(sizes(rig).length, 66, "a resume writes nothing");
  });

  test("R-5: what is sealed is the chain that the store has, links of keys too that were replaced since", async (context) => {
    const { rig } = await ControlRig.open(context);
    const { sandboxId } = await rig.create();
    const kids = new Set<string | undefined>();
    for (let pauses = 0; pauses < 3; pauses += 1) {
      await rig.service.pause(rig.caller, sandboxId, false);
      await rig.connect(sandboxId);
      kids.add(rig.control.keys.view().keys.find(({ state }) => state === "signing")?.kid);
      await rig.control.keys.rotate();
      await rig.clock.advance(5000);
    }
    await rig.service.pause(rig.caller, sandboxId, false);
    faultLanded("keys were replaced in between", kids.size - 1);
    const end = await open(rig, (await newest(rig, sandboxId)).chain);
    assert.equal(end.certificate.digest, (await rig.record(sandboxId)).certificateHead);
    assert.equal(end.links, 7);
  });

  test("R-5: an execution that died without a snapshot is told to the worker that restores the one before", async (context) => {
    const { rig, workers } = await ControlRig.open(context);
    const asked: ActivateRequest[] = [];
    for (const worker of workers) {
      const { activate } = worker;
      worker.activate = (request) => {
        asked.push(request);
        return activate.call(worker, request);
      };
    }
    const long = { timeoutMs: 3_600_000 };
    const { sandboxId } = await rig.create(long);
    await rig.service.pause(rig.caller, sandboxId, false);
    const first = await newest(rig, sandboxId);
    await rig.connect(sandboxId, { ...long, workerId: workers[0].workerId });
    assert.equal(asked.at(-1)?.from?.since, null, "nothing has come after it");
    rig.detach(workers[0]);
    await rig.clock.advance(70_000);
    assert.equal((await rig.record(sandboxId)).state, "lost");
    await rig.connect(sandboxId, { ...long, snapshot: first.digest });
    const { from } = asked.at(-1) ?? assert.fail("it was asked");
    assert.deepEqual([from?.digest, from?.manifest.chain], [first.digest, first.chain]);
    const since = await open(rig, from?.since ?? assert.fail("something has come after it"));
    assert.equal(since.certificate.certificate.identity.generation, 2n);
    assert.equal(since.manifest, first.digest);
    await rig.service.pause(rig.caller, sandboxId, false);
    const end = await open(rig, (await newest(rig, sandboxId)).chain);
    assert.deepEqual([end.certificate.certificate.identity.generation, end.links], [3n, 4]);
  });
});

describe("what is in the way", () => {
  test("R-5: a pause whose chain cannot be written is given up, and the next one writes what is missing", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    let failed = 0;
    rig.store.beforePut = (key) => {
      if (!key.startsWith("chunks/")) return;
      failed += 1;
      throw new SpaceError("store/failed", { step: "put" });
    };
    for (let tries = 0; tries < 2; tries += 1)
      await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), { code: "store/failed" });
    faultLanded("the object store failed", failed - 1);
    assert.equal((await rig.record(sandboxId)).state, "running");
    rig.store.beforePut = () => undefined;
    await rig.service.pause(rig.caller, sandboxId, true);
    await open(rig, (await newest(rig, sandboxId)).chain);
    assert.equal(sizes(rig).length, 1);
  });

  test("R-5: an object that is lost is made again, the same, before the next is linked to it", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    await rig.service.pause(rig.caller, sandboxId, false);
    const { chain } = await newest(rig, sandboxId);
    const sealed = await rig.sealed();
    const whole = await sealed.get(chain);
    sealed.replace(chain, undefined);
    await rig.connect(sandboxId);
    assert.deepEqual(await sealed.get(chain), whole);
    sealed.replace(chain, undefined);
    await rig.service.pause(rig.caller, sandboxId, false);
    assert.deepEqual(await sealed.get(chain), whole);
    assert.equal((await open(rig, (await newest(rig, sandboxId)).chain)).links, 3);
  });

  test("R-5: a snapshot over another chain than the one that was sent is refused, and the sandbox runs on", async (context) => {
    const { rig, workers } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const { snapshot } = workers[0];
    workers[0].snapshot = (identity, follows, key) =>
      snapshot.call(workers[0], identity, { ...follows, chain: manifestDigest("another") }, key);
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), {
      code: "snapshot/refused",
      details: { problem: "other chain" },
    });
    workers[0].snapshot = (identity, follows) =>
      snapshot.call(workers[0], identity, follows, { keyId: newTenantKeyId(rig.random) });
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), {
      code: "snapshot/refused",
      details: { problem: "other key" },
    });
    assert.equal((await rig.record(sandboxId)).state, "running");
  });

  test("R-5: a snapshot of an earlier version is refused as that; everything else goes on", async (context) => {
    const { rig } = await ControlRig.open(context, { workers: 1 });
    const { sandboxId } = await rig.create();
    const running = await rig.record(sandboxId);
    const claim = { owner: "earlier", untilMs: rig.clock.wallMs() + 1000 };
    const claimed = await rig.sandboxes.change({
      on: running,
      change: { kind: "claim-pause", claim, sealed: [] },
    });
    assert.ok(claimed.kind === "won");
    const [pem = ""] = rig.privateKeys.texts.values();
    const signed = oldManifest(running.execution.identity);
    const digest = manifestDigest(signed);
    const countersigned = countersignManifest(importSigningKey(pem), signed);
    const manifest = { countersigned, digest, previous: null, memory: "none", sizeBytes: 1 } as const;
    const committed = await rig.sandboxes.change({
      on: claimed.record,
      change: { kind: "commit-pause", manifest, frozenOn: null, endAtMs: rig.clock.wallMs() },
    });
    assert.ok(committed.kind === "won");
    rig.crash();
    await rig.start();
    const worker = rig.newWorker();
    await rig.attach(worker);
    await assert.rejects(
      rig.connect(sandboxId),
      (error) => isSpaceError(error, "snapshot/version") && error.details.version === 1,
    );
    assert.equal((await rig.record(sandboxId)).state, "paused");
    await rig.create();
    await rig.service.kill(rig.caller, sandboxId);
  });
});

/** A manifest as version 1 had it. */
function oldManifest(identity: ExecutionIdentity): string {
  const key = newSigningKey();
  const token = signManifest(key, {
    version: manifestVersion,
    identity,
    certificate: manifestDigest("certificate"),
    previousManifest: null,
    chain: manifestDigest("chain"),
    keyId: testTenantKey.keyId,
    substrate: "namespace",
    memory: "none",
    filesystem: [],
    createdAtSeconds: 1,
  });
  const [header = "", payload = "", signature = ""] = token.split(".");
  const { chain: _none, ...rest } = JSON.parse(Buffer.from(payload, "base64url").toString());
  const old = Buffer.from(JSON.stringify({ ...rest, version: 1 })).toString("base64url");
  return `${header}.${old}.${signature}`;
}
