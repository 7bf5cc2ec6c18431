// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readStoredManifest, SealedChains } from "@space/capability";
import { type Digest, isSpaceError, type SandboxRecord, type TenantKeyring } from "@space/model";
import { placeOf, snapshotStore } from "@space/snapshot";
import type { MemoryControlTables } from "../src/memory-control-tables.ts";
import type { Oracle } from "./oracle.ts";
import type { SimByteStore } from "./sim-byte-store.ts";
import type { SimRandom } from "./sim-random.ts";

export interface SnapshotScene {
  readonly oracle: Oracle;
  readonly tables: MemoryControlTables;
  readonly objects: SimByteStore;
  readonly tenantKeys: TenantKeyring;
  readonly random: SimRandom;
  readonly root: ConstructorParameters<typeof SealedChains>[0]["root"];
}

const resumable: ReadonlySet<SandboxRecord["state"]> = new Set(["paused", "lost", "running"]);

/**
 * With every fault over and time enough for collectors: every snapshot that a sandbox may be resumed from is there, whole,
 * with its chain; and the store holds nothing that none of them needs.
 */
export async function checkSnapshots(scene: SnapshotScene): Promise<void> {
  const { oracle, tables, objects } = scene;
  const wrong = (problem: string): void =>
    oracle.violate("settles: snapshots are kept, and nothing else", problem);
  const needed = new Set<string>();
  for (const record of tables.all()) {
    if (record.snapshot === null || !resumable.has(record.state)) continue;
    try {
      for (const place of await placesOf(scene, record)) needed.add(place);
    } catch (error) {
      if (!isSpaceError(error)) throw error;
      wrong(
        `${record.sandboxId} is ${record.state}, but its snapshot is refused: ${error.code} ${String(error.cause)}`,
      );
    }
  }
  for (const place of objects.held.keys())
    if (!place.startsWith("keys/") && !needed.has(place)) wrong(`${place} is needed by nothing`);
}

/** Read and verified with a reading of our own, so what the product says of it is not believed. */
async function placesOf(
  { tables, objects: store, tenantKeys, random, root }: SnapshotScene,
  { sandboxId, snapshot, tenantId }: SandboxRecord,
): Promise<readonly string[]> {
  const digest = snapshot?.digest;
  const stored = digest && tables.manifest(sandboxId, digest);
  if (digest === undefined || stored === undefined) return [];
  const manifest = readStoredManifest(stored.countersigned, digest);
  const key = await tenantKeys.find(tenantId, manifest.keyId);
  const { archives, objects } = snapshotStore({ store, random }).open(key);
  const read: Digest[] = [digest];
  await objects.get(digest);
  await new SealedChains({ root }).open(manifest.chain, (name) => {
    read.push(name);
    return objects.get(name);
  });
  for await (const _piece of archives.read(manifest.filesystem));
  // What was certified after the snapshot may be there too, for the next pause to go on from.
  const later = tables.segments(sandboxId, Number.POSITIVE_INFINITY).map((segment) => segment.digest);
  const chunks = manifest.filesystem.map((chunk) => chunk.digest);
  return [...read, ...chunks, ...later].map((name) => placeOf(key, name));
}
