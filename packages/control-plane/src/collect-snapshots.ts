// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readStoredManifest } from "@space/capability";
import {
  type Digest,
  isSpaceError,
  type KeyScope,
  manifestVersion,
  type SnapshotCollector,
  type SnapshotId,
  type SnapshotManifest,
  type SnapshotReferences,
  type StoredSnapshot,
  type TenantId,
  type TenantKeyId,
} from "@space/model";
import { codeOf } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import { objectsOfChain } from "./sealed-chain.ts";

type ReferenceParts = Pick<ControlParts, "sandboxes">;
const pageLength = 100;

/**
 * What is needed: of each sandbox that is not dead the newest snapshot alone. Nothing resumes from an older one: it is
 * replaced by the commit of a pause, which a sandbox comes to only when what it was resumed from has been read. And every
 * snapshot that is kept apart: those are forgotten only when no sandbox can begin with them, or is beginning.
 */
export function snapshotReferences(parts: ReferenceParts): SnapshotReferences {
  return {
    needed: (scope) => neededBy(parts, scope),
    async underWay({ tenantId }) {
      // The revision is that of the claim: whoever takes the pause over aborts it, so then it can never be committed.
      const pausing = await parts.sandboxes.pausing(tenantId);
      return new Set(pausing.map(({ sandboxId, revision }) => `${sandboxId}/${revision}`));
    },
  };
}

async function* neededBy(parts: ReferenceParts, scope: KeyScope): AsyncIterable<Digest> {
  const { tenantId, keyId } = scope;
  yield* keptBy(parts, scope);
  for await (const stored of newestSnapshots(parts, tenantId)) {
    const manifest = readOwn(stored);
    if (manifest?.keyId !== keyId) continue;
    yield stored.digest;
    for (const { digest } of manifest.filesystem) yield digest;
    yield* await objectsOfChain(parts, stored.sandboxId, manifest.chain);
  }
}

async function* keptBy({ sandboxes }: ReferenceParts, { tenantId, keyId }: KeyScope): AsyncIterable<Digest> {
  for (let after: SnapshotId | null = null; ; ) {
    const page: Awaited<ReturnType<typeof sandboxes.neededSnapshots>> = await sandboxes.neededSnapshots(
      tenantId,
      { after, limit: pageLength },
    );
    for (const stored of page) {
      const manifest = readOwn(stored);
      if (manifest?.keyId !== keyId) continue;
      yield stored.digest;
      for (const { digest } of manifest.filesystem) yield digest;
      yield* stored.objects;
    }
    after = page.at(-1)?.snapshotId ?? null;
    if (page.length < pageLength) return;
  }
}

async function* newestSnapshots(
  { sandboxes }: ReferenceParts,
  tenantId: TenantId,
): AsyncIterable<StoredSnapshot> {
  for (let after: StoredSnapshot | undefined; ; ) {
    const page = await sandboxes.snapshots(tenantId, { after: after?.sandboxId ?? null, limit: pageLength });
    yield* page;
    after = page.at(-1);
    if (page.length < pageLength) return;
  }
}

/** Undefined for one of an earlier version: those were not sealed. What cannot be read otherwise ends the pass. */
function readOwn({
  countersigned,
  digest,
}: Pick<StoredSnapshot, "countersigned" | "digest">): SnapshotManifest | undefined {
  try {
    return readStoredManifest(countersigned, digest);
  } catch (error) {
    if (isSpaceError(error, "snapshot/version") && error.details.version < manifestVersion) return undefined;
    throw error;
  }
}

/**
 * Removes what killed sandboxes, replaced snapshots and pauses that were given up have left in the store: one pass over
 * every key of every tenant. A key, or a tenant, that fails is gone over again the next time, and holds up no other.
 */
export class SnapshotCollection {
  readonly #parts: Pick<ControlParts, "tenantKeys" | "audit">;
  readonly #collector: SnapshotCollector;

  constructor(parts: Pick<ControlParts, "tenantKeys" | "audit" | "sandboxes" | "collector">) {
    this.#parts = parts;
    this.#collector = parts.collector(snapshotReferences(parts));
  }

  /** One pass. Begins nothing more when `isStopped`. */
  async pass(isStopped: () => boolean): Promise<void> {
    const { tenantKeys } = this.#parts;
    for (const tenantId of await tenantKeys.tenants()) {
      for (const keyId of await tenantKeys.versions(tenantId)) {
        if (isStopped()) return;
        await this.#collect(tenantId, keyId);
      }
    }
  }

  async #collect(tenantId: TenantId, keyId: TenantKeyId): Promise<void> {
    const { tenantKeys, audit } = this.#parts;
    try {
      const { removed, removedBytes, restored } = await this.#collector.collect(
        await tenantKeys.find(tenantId, keyId),
      );
      if (removed + restored > 0)
        audit.record("snapshot/collected", { tenantId, keyId, removed, removedBytes, restored });
    } catch (error) {
      audit.record("upkeep/failed", { task: `collect ${keyId}`, sandboxId: null, code: codeOf(error) });
    }
  }
}
