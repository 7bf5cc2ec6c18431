// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readStoredManifest } from "@space/capability";
import type { Digest, SandboxRecord, TenantId } from "@space/model";
import { placeOf, TenantKeys } from "@space/snapshot";
import type { LossRig } from "./loss-rig.ts";
import { SeededRandom } from "./seeded-random.ts";

const pageLimit = 100;

/** Every sandbox that is not dead: also what rests, and holds nothing anywhere but its snapshot. */
export async function livingSandboxes(rig: LossRig): Promise<readonly SandboxRecord[]> {
  const { tenantId } = rig.caller;
  const ids = new Set((await rig.sandboxes.live()).map(({ sandboxId }) => sandboxId));
  const saved = await rig.sandboxes.snapshots(tenantId, { after: null, limit: pageLimit });
  for (const { sandboxId } of saved) ids.add(sandboxId);
  return Promise.all([...ids].map((sandboxId) => rig.record(sandboxId)));
}

/**
 * With time enough for every recovery: each sandbox is in a stable state that is true, nothing runs, is installed, is kept
 * frozen, is owed, or lies in the object store that no sandbox names, and everything that one names is there.
 */
export async function checkSettledWorld(rig: LossRig): Promise<void> {
  const records = await livingSandboxes(rig);
  for (const { sandboxId, state, claim } of records) {
    assert.equal(claim, null, `${sandboxId} is ${state}, and its claim is left`);
    assert.ok(state === "running" || state === "paused", `${sandboxId} is ${state}`);
  }
  checkWorkers(rig, records);
  assert.deepEqual(await rig.sandboxes.pending({ limit: pageLimit }), [], "orders are on their way for ever");
  for (const [generation, activations] of rig.starts)
    assert.equal(activations.size, 1, `${generation} was started as ${activations.size} processes`);
  await checkObjects(rig, records);
}

function checkWorkers(rig: LossRig, records: readonly SandboxRecord[]): void {
  for (const { workerId, machine, daemon } of rig.sides) {
    const here = records.filter(({ execution, state }) => {
      return state === "running" && execution.identity.placement.workerId === workerId;
    });
    const kept = records.filter(({ snapshot }) => snapshot?.frozenOn === workerId);
    const { installed, frozen } = daemon.worker.inventory();
    const byId = (a: { sandboxId: string }, b: { sandboxId: string }): number =>
      a.sandboxId < b.sandboxId ? -1 : 1;
    assert.deepEqual(
      installed.toSorted(byId),
      here.map(({ execution }) => execution.identity).toSorted(byId),
      "what is installed is what runs, as the store says",
    );
    assert.deepEqual(
      frozen.toSorted(byId),
      kept.map(({ sandboxId, snapshot }) => ({ sandboxId, manifest: snapshot?.digest })).toSorted(byId),
      "what is kept frozen is what the store counts on",
    );
    const states = [...machine.processes.values()].map(({ state }) => state);
    const running = states.filter((state) => state === "running").length;
    assert.deepEqual(
      { running, frozen: states.length - running },
      { running: here.length, frozen: kept.length },
      "every process belongs to a sandbox, and every sandbox has its process",
    );
    for (const record of here)
      assert.equal(rig.processOf(record)?.state, "running", `${record.sandboxId} runs, and its process not`);
  }
}

/** What lies in the object store, against what snapshots name. */
async function checkObjects(rig: LossRig, records: readonly SandboxRecord[]): Promise<void> {
  const { tenantId } = rig.caller;
  const { needed, allowed } = await namedObjects(rig, records, tenantId);
  const sealing = { store: rig.objects, random: new SeededRandom("check"), wrapping: rig.wrapping };
  const key = await new TenantKeys(sealing).current(tenantId);
  const places = (digests: ReadonlySet<Digest>): Set<string> =>
    new Set([...digests].map((digest) => placeOf(key, digest)));
  const [wanted, known] = [places(needed), places(allowed)];
  const held = [...rig.objects.held.keys()];
  for (const place of wanted) assert.ok(held.includes(place), "an object that a snapshot names is missing");
  const leaked = held.filter((place) => {
    return place.startsWith("condemned/") || (place.startsWith("chunks/") && !known.has(place));
  });
  assert.deepEqual(leaked, [], "objects that no snapshot names");
}

async function namedObjects(
  rig: LossRig,
  records: readonly SandboxRecord[],
  tenantId: TenantId,
): Promise<{ readonly needed: ReadonlySet<Digest>; readonly allowed: ReadonlySet<Digest> }> {
  const needed = new Set<Digest>();
  const allowed = new Set<Digest>();
  const add = (countersigned: string, digest: Digest): void => {
    for (const chunk of readStoredManifest(countersigned, digest).filesystem) needed.add(chunk.digest);
  };
  for (const { sandboxId, snapshot } of records) {
    for (const { digest } of await rig.sandboxes.segments(sandboxId, pageLimit)) allowed.add(digest);
    const stored = snapshot && (await rig.sandboxes.manifest(sandboxId, snapshot.digest));
    if (snapshot === null) continue;
    assert.ok(stored, `${sandboxId} names a manifest that is not stored`);
    add(stored.countersigned, snapshot.digest);
    allowed.add(snapshot.digest);
  }
  for (const kept of await rig.sandboxes.neededSnapshots(tenantId, { after: null, limit: pageLimit })) {
    const row = await rig.sandboxes.keptSnapshot(tenantId, kept.snapshotId);
    assert.equal(row?.heldUntilMs, null, "a fork's snapshot is held for ever");
    add(kept.countersigned, kept.digest);
    for (const digest of [kept.digest, ...kept.objects]) allowed.add(digest);
  }
  for (const digest of needed) allowed.add(digest);
  return { needed, allowed };
}
