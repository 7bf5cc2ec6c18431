// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Sealed snapshots from end to end: the real control plane and real workers, one store, and what can be wrong in it.

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import {
  countersignManifest,
  KeyArchive,
  newSigningKey,
  readStoredManifest,
  verifyCountersigned,
} from "@space/capability";
import { type Digest, isSpaceError, type SandboxId, type SnapshotManifest, SpaceError } from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import { Fleet, turns } from "../src/fleet-rig.ts";
import { SealedObjects, sealedCount } from "../src/sealed-objects.ts";
import { settle } from "../src/virtual-clock.ts";
import type { WorkerRig } from "../src/worker-rig.ts";

const collectTickMs = 1000;
/** Put aside in the first pass, removed in the second; and none that began before is waited for. */
const passesMs = 3 * collectTickMs;
const open = (context: TestContext): Promise<Fleet> => Fleet.open(context, { collectTickMs });

function write(side: WorkerRig, files: string): void {
  for (const process of side.machine.processes.values()) process.files = files;
}

const filesOn = (side: WorkerRig): readonly string[] =>
  [...side.machine.processes.values()].map(({ files }) => files);

/** A sandbox that was paused on the first worker with these files. */
async function pausedWith({ rig, a }: Fleet, files: string): Promise<SandboxId> {
  const { sandboxId } = await rig.create({ workerId: a.workerId });
  write(a, files);
  await rig.service.pause(rig.caller, sandboxId, false);
  return sandboxId;
}

async function newest(
  { rig }: Fleet,
  sandboxId: SandboxId,
): Promise<{ manifest: SnapshotManifest; digest: Digest; countersigned: string }> {
  const { snapshot } = await rig.record(sandboxId);
  const stored = snapshot && (await rig.sandboxes.manifest(sandboxId, snapshot.digest));
  assert.ok(snapshot && stored);
  const manifest = readStoredManifest(stored.countersigned, snapshot.digest);
  return { manifest, digest: snapshot.digest, countersigned: stored.countersigned };
}

describe("what is wrong in the store", () => {
  test("each wrong chunk is refused by its own error; the sandbox stays paused, and resumes from the good copy", async (context) => {
    const fleet = await open(context);
    const { rig, b } = fleet;
    const sandboxId = await pausedWith(fleet, "the files of one sandbox");
    const { manifest } = await newest(fleet, sandboxId);
    const other = await newest(fleet, await pausedWith(fleet, "what another sandbox has"));
    const [first, second] = manifest.filesystem;
    const [theirs] = other.manifest.filesystem;
    assert.ok(first && second && theirs);
    const sealed = await rig.sealed();
    const { tenantId } = await rig.newCaller("somebody else");
    const foreign = new SealedObjects(rig.store, await rig.tenantKeys.current(tenantId));
    await foreign.put(second.digest, await sealed.get(second.digest));
    const whole = sealed.stored(second.digest);
    const cases: readonly (readonly [what: string, bytes: Uint8Array | undefined, code: string])[] = [
      ["missing", undefined, "snapshot/missing"],
      ["truncated", whole.subarray(0, whole.length - 1), "chunk/truncated"],
      ["empty", new Uint8Array(), "chunk/truncated"],
      ["flipped", Buffer.from(whole).fill(whole.at(-1) === 0 ? 1 : 0, whole.length - 1), "chunk/damaged"],
      ["in another's place", sealed.stored(first.digest), "chunk/misplaced"],
      ["of another snapshot", sealed.stored(theirs.digest), "chunk/misplaced"],
      ["of another tenant", foreign.stored(second.digest), "chunk/misplaced"],
      ["of a future version", Buffer.from(whole).fill(2, 0, 1), "chunk/version"],
    ];
    for (const [what, bytes, code] of cases) {
      const repair = sealed.replace(second.digest, bytes);
      await assert.rejects(rig.connect(sandboxId, { workerId: b.workerId }), { code }, what);
      assert.equal((await rig.record(sandboxId)).state, "paused", what);
      assert.deepEqual(filesOn(b), [], what);
      repair();
    }
    assert.equal((await rig.connect(sandboxId, { workerId: b.workerId })).state, "running");
    assert.deepEqual(filesOn(b), ["the files of one sandbox"]);
  });

  test("incident 33: a manifest of another sandbox, an older one, or under another's signature is refused", async (context) => {
    const fleet = await open(context);
    const { rig, a, b } = fleet;
    const sandboxId = await pausedWith(fleet, "old");
    const older = await newest(fleet, sandboxId);
    await rig.connect(sandboxId, { workerId: a.workerId });
    write(a, "new");
    await rig.service.pause(rig.caller, sandboxId, false);
    const now = await newest(fleet, sandboxId);
    const other = await newest(fleet, await pausedWith(fleet, "another's"));
    const archive = KeyArchive.fromBundles(await rig.bundles(), rig.root.publicKey);
    const signed = verifyCountersigned(now.countersigned, archive);
    const { manifest } = rig.sandboxes;
    const cases = [
      ["of another sandbox", other.countersigned, "digest"],
      ["older than the newest", older.countersigned, "digest"],
      ["under another's countersignature", countersignManifest(newSigningKey(), signed), "key"],
      ["cut off", now.countersigned.slice(0, -1), "form"],
    ] as const;
    let shown = 0;
    for (const [what, countersigned, problem] of cases) {
      rig.sandboxes.manifest = async (...asked) => {
        const stored = await manifest.apply(rig.sandboxes, asked);
        shown += 1;
        return stored && { ...stored, countersigned };
      };
      await assert.rejects(
        rig.connect(sandboxId, { workerId: b.workerId }),
        (error) => isSpaceError(error, "snapshot/refused") && error.details.problem === problem,
        what,
      );
      assert.equal((await rig.record(sandboxId)).state, "paused", what);
    }
    faultLanded("each was shown in place of the newest", shown - cases.length + 1);
    rig.sandboxes.manifest = manifest;
    await rig.connect(sandboxId, { workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["new"]);
  });

  test("a damaged chunk that a later pause needs is stored anew by that pause", async (context) => {
    const fleet = await open(context);
    const { rig, a, b } = fleet;
    const sandboxId = await pausedWith(fleet, "the same files twice");
    const { manifest } = await newest(fleet, sandboxId);
    await rig.connect(sandboxId, { workerId: a.workerId });
    const [chunk] = manifest.filesystem;
    (await rig.sealed()).alter(chunk?.digest ?? assert.fail("there is one"));
    await fleet.reboot(a); // a process that has seen it whole does not look again
    await rig.service.pause(rig.caller, sandboxId, false);
    await rig.connect(sandboxId, { workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["the same files twice"]);
  });
});

describe("keys", () => {
  test("a snapshot is sealed whole with one version, and an older one is read with its own", async (context) => {
    const fleet = await open(context);
    const { rig, a, b } = fleet;
    const { tenantId } = rig.caller;
    const sandboxId = await pausedWith(fleet, "before");
    for (let pauses = 0; pauses < 40; pauses += 1) {
      await rig.connect(sandboxId, { workerId: a.workerId });
      await rig.service.pause(rig.caller, sandboxId, false);
    }
    const before = await rig.sealed();
    const next = await rig.tenantKeys.rotate(tenantId);
    assert.equal((await newest(fleet, sandboxId)).manifest.keyId, before.key.keyId);
    await rig.connect(sandboxId, { workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["before"]);
    write(b, "after");
    await rig.service.pause(rig.caller, sandboxId, false);
    assert.equal((await newest(fleet, sandboxId)).manifest.keyId, next.keyId);
    await rig.clock.advance(passesMs);
    const left = [...rig.store.held.keys()].filter((key) => key.includes(before.key.keyId));
    assert.deepEqual(
      left.filter((key) => !key.startsWith("keys/")),
      [],
      "nothing needs the old one any more",
    );
    for (const key of left) rig.store.held.delete(key);
    await fleet.reboot(a);
    await rig.connect(sandboxId, { workerId: a.workerId });
    assert.deepEqual(filesOn(a), ["after"], "the new key alone opens it down to generation 1");
  });

  test("without the key-encryption key a pause fails and the sandbox runs on, and a paused one stays paused", async (context) => {
    const fleet = await open(context);
    const { rig, a } = fleet;
    const paused = await pausedWith(fleet, "kept");
    const { sandboxId } = await rig.create({ workerId: a.workerId });
    rig.wrapping.newest = 2;
    rig.wrapping.oldest = 2;
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, true), { code: "key-wrapping/unknown" });
    assert.equal((await rig.record(sandboxId)).state, "running");
    await assert.rejects(rig.connect(paused), { code: "key-wrapping/unknown" });
    assert.equal((await rig.record(paused)).state, "paused");
    const failed = rig.audit.of("upkeep/failed").length;
    await rig.clock.advance(passesMs);
    faultLanded("nothing was collected", rig.audit.of("upkeep/failed").length - failed);
    rig.wrapping.oldest = 1;
    await rig.tenantKeys.rewrap();
    rig.wrapping.oldest = 2;
    await rig.connect(paused, { workerId: a.workerId });
    await rig.service.pause(rig.caller, sandboxId, true);
  });

  test("a tenant's key that is gone is said to be missing", async (context) => {
    const fleet = await open(context);
    const sandboxId = await pausedWith(fleet, "unreadable");
    await fleet.rig.tenantKeys.destroy(fleet.rig.caller.tenantId);
    await assert.rejects(fleet.rig.connect(sandboxId), { code: "tenant-key/missing" });
    assert.equal((await fleet.rig.record(sandboxId)).state, "paused");
  });

  test("the key is in no row, no event and no error of the control plane", async (context) => {
    const fleet = await open(context);
    const { rig } = fleet;
    const sandboxId = await pausedWith(fleet, "secret");
    const secret = Buffer.from((await rig.sealed()).key.secret.reveal());
    const said = JSON.stringify([rig.audit.events, await rig.record(sandboxId)], (_name, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    assert.ok(said.includes(sandboxId));
    for (const encoding of ["hex", "base64", "base64url"] as const)
      assert.ok(!said.includes(secret.toString(encoding)));
    for (const { bytes } of rig.store.held.values()) assert.ok(!Buffer.from(bytes).includes(secret));
  });
});

describe("the collector", () => {
  test("R-5: removes what a killed sandbox leaves, and nobody else's", async (context) => {
    const fleet = await open(context);
    const { rig, a, b } = fleet;
    const kept = await pausedWith(fleet, "shared files");
    await rig.clock.advance(passesMs);
    const before = new Set(rig.store.held.keys());
    const killed = await pausedWith(fleet, "shared files, and more that is its own");
    for (let pauses = 0; pauses < 3; pauses += 1) {
      await rig.connect(killed, { workerId: a.workerId });
      write(a, `files ${pauses}`);
      await rig.service.pause(rig.caller, killed, false);
    }
    faultLanded("it has left something", sealedCount(rig.store) - before.size);
    await rig.service.kill(rig.caller, killed);
    await rig.clock.advance(passesMs);
    assert.deepEqual(new Set(rig.store.held.keys()), before);
    const [collected] = rig.audit.of("snapshot/collected");
    assert.ok(collected && collected.removed > 0 && collected.removedBytes > 0);
    await rig.connect(kept, { workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["shared files"]);
  });

  test("keeps the newest snapshot alone, and what a running sandbox was resumed from", async (context) => {
    const fleet = await open(context);
    const { rig, a, b } = fleet;
    const long = { timeoutMs: 3_600_000 };
    const { sandboxId } = await rig.create({ workerId: a.workerId, ...long });
    write(a, "first files");
    await rig.service.pause(rig.caller, sandboxId, false);
    const first = await newest(fleet, sandboxId);
    await rig.connect(sandboxId, { workerId: a.workerId, ...long });
    await rig.clock.advance(passesMs);
    const sealed = await rig.sealed();
    assert.ok(sealed.has(first.digest), "it may be lost yet");
    write(a, "second");
    await rig.service.pause(rig.caller, sandboxId, false);
    await rig.clock.advance(passesMs);
    assert.equal(sealed.has(first.digest), false);
    const { filesystem, chain } = (await newest(fleet, sandboxId)).manifest;
    assert.deepEqual(
      first.manifest.filesystem.filter(({ digest }) => sealed.has(digest)),
      [],
    );
    assert.ok(filesystem.every(({ digest }) => sealed.has(digest)));
    assert.ok(
      sealed.has(chain) && sealed.has(first.manifest.chain),
      "its chain is whole, down to generation 1",
    );
    await rig.connect(sandboxId, { workerId: b.workerId, ...long });
    assert.deepEqual(filesOn(b), ["second"]);
  });

  test("a pause that relies on what nothing needed keeps it, however long it takes", async (context) => {
    const fleet = await open(context);
    const { rig, a, b } = fleet;
    const first = await pausedWith(fleet, "files that two have");
    const { sandboxId } = await rig.create({ workerId: a.workerId });
    write(a, "files that two have");
    const { put } = rig.store;
    const gate = Promise.withResolvers<void>();
    let held = 0;
    rig.store.put = async (key, bytes) => {
      // What the pause stores last: everything else it has found, or stored, before.
      if (key.startsWith("chunks/") && bytes.length > 300) {
        held += 1;
        if (held === 2) await gate.promise;
      }
      return put.call(rig.store, key, bytes);
    };
    const pausing = rig.service.pause(rig.caller, sandboxId, false);
    await settle(turns);
    faultLanded("the pause stands before its manifest", held - 1);
    await rig.service.kill(rig.caller, first);
    await rig.clock.advance(2 * passesMs);
    const aside = [...rig.store.held.keys()].filter((key) => key.startsWith("condemned/"));
    faultLanded("what it relies on was put aside", aside.length);
    gate.resolve();
    await pausing;
    rig.store.put = put;
    await rig.clock.advance(passesMs);
    await rig.connect(sandboxId, { workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["files that two have"]);
    assert.ok(rig.audit.of("snapshot/collected").some(({ restored }) => restored > 0));
  });

  test("a manifest that was written and never committed is removed", async (context) => {
    const fleet = await open(context);
    const { rig, a, b } = fleet;
    const { sandboxId } = await rig.create({ workerId: a.workerId });
    write(a, "never paused");
    const { change } = rig.sandboxes;
    let failed = 0;
    rig.sandboxes.change = (request) => {
      if (request.change.kind !== "commit-pause") return change.call(rig.sandboxes, request);
      failed += 1;
      return Promise.reject(new SpaceError("store/failed", { step: "commit" }));
    };
    await assert.rejects(rig.service.pause(rig.caller, sandboxId, false), { code: "store/failed" });
    rig.sandboxes.change = change;
    faultLanded("the manifest was written", Math.min(failed, sealedCount(rig.store)));
    assert.equal((await rig.record(sandboxId)).state, "running");
    await rig.clock.advance(passesMs);
    assert.equal(sealedCount(rig.store), 0);
    await rig.service.pause(rig.caller, sandboxId, false);
    await rig.connect(sandboxId, { workerId: b.workerId });
    assert.deepEqual(filesOn(b), ["never paused"]);
  });

  test("R-16: what a worker has written that was lost in the middle of a pause is removed", async (context) => {
    const fleet = await open(context);
    const { rig, a } = fleet;
    const { sandboxId } = await rig.create({ workerId: a.workerId, timeoutMs: 3_600_000 });
    write(a, "half written");
    const { put } = rig.store;
    let written = 0;
    rig.store.put = async (key, bytes) => {
      await put.call(rig.store, key, bytes);
      if (!key.startsWith("chunks/")) return;
      written += 1;
      if (written < 3) return;
      fleet.cut(a);
      await new Promise(() => undefined); // its power is off
    };
    const pausing = rig.service.pause(rig.caller, sandboxId, false).catch((error: unknown) => error);
    await settle(turns);
    assert.ok(isSpaceError(await pausing));
    rig.store.put = put;
    faultLanded("it had written some of it", sealedCount(rig.store));
    await rig.clock.advance(80_000 + passesMs);
    assert.equal((await rig.record(sandboxId)).state, "lost");
    assert.equal(sealedCount(rig.store), 0);
    assert.deepEqual(
      [...rig.store.held.keys()].filter((key) => !key.startsWith("keys/")),
      [],
    );
  });

  test("one tenant's failure holds up no other's collection, and is told", async (context) => {
    const fleet = await open(context);
    const { rig } = fleet;
    const mine = await pausedWith(fleet, "mine");
    const { tenantId } = await rig.newCaller("somebody else");
    const theirs = await rig.tenantKeys.current(tenantId);
    const [place] = [...rig.store.held.keys()].filter((key) => key.startsWith(`keys/${tenantId}/`));
    await rig.store.put(place ?? "", Buffer.from("no key"));
    await rig.service.kill(rig.caller, mine);
    await rig.clock.advance(passesMs);
    assert.equal(sealedCount(rig.store), 0);
    const said = rig.audit.of("upkeep/failed").filter(({ task }) => task === `collect ${theirs.keyId}`);
    faultLanded("their key could not be opened", said.length);
  });
});
