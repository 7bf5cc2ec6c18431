// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  isSpaceError,
  type KeptSnapshot,
  type ListSnapshots,
  parseSandboxId,
  type SandboxId,
  type SnapshotView,
  SpaceError,
  type TenantId,
} from "@space/model";
import { keepSnapshot } from "./keep-snapshot.ts";
import type { ControlParts } from "./parts.ts";
import { fullName, parseSnapshotName, readReference, templateOf } from "./snapshot-names.ts";

/** See `SnapshotService.snapshot`. */
export async function takeSnapshot(
  parts: ControlParts,
  of: { readonly caller: ApiCaller; readonly sandboxId: SandboxId },
  name: string | undefined,
): Promise<SnapshotView> {
  const stored = name === undefined ? null : parseSnapshotName(of.caller.tenantId, name);
  const { kept } = await keepSnapshot(parts, of, { name: stored, heldUntilMs: null });
  return snapshotView(kept);
}

/** See `SnapshotService.listSnapshots`. */
export async function listSnapshots(
  { sandboxes }: Pick<ControlParts, "sandboxes">,
  { tenantId }: ApiCaller,
  { sandboxId, name, limit, after }: ListSnapshots,
): Promise<readonly SnapshotView[]> {
  const page = { limit, ...(after === undefined ? {} : { after }) };
  const of = sandboxId === undefined ? {} : idOrNone(sandboxId);
  const reference = name === undefined ? undefined : readReference(tenantId, name);
  if (of === undefined || (name !== undefined && reference === undefined)) return [];
  if (reference?.snapshotId !== undefined) {
    const named = await findKept({ sandboxes }, tenantId, name ?? "");
    return named === undefined ? [] : [snapshotView(named)];
  }
  const named = reference === undefined ? {} : { name: reference.name };
  const found = await sandboxes.listKept(tenantId, { ...page, ...of, ...named });
  return found.map(snapshotView);
}

/** What has not the form of an id is nobody's. */
function idOrNone(text: string): { readonly sandboxId: SandboxId } | undefined {
  try {
    return { sandboxId: parseSandboxId(text) };
  } catch (error) {
    if (isSpaceError(error, "input/invalid")) return undefined;
    throw error;
  }
}

/** See `SnapshotService.deleteSnapshot`. */
export async function deleteSnapshot(
  parts: Pick<ControlParts, "sandboxes" | "audit">,
  { tenantId }: ApiCaller,
  template: string,
): Promise<void> {
  const kept = await findKept(parts, tenantId, template);
  if (kept === undefined || !(await releaseKept(parts, kept)))
    throw new SpaceError("template/not-found", { template });
}

/** A snapshot that its owner can name: not a fork's, nor one that was deleted. */
export async function findKept(
  { sandboxes }: Pick<ControlParts, "sandboxes">,
  tenantId: TenantId,
  template: string,
): Promise<KeptSnapshot | undefined> {
  const reference = readReference(tenantId, template);
  if (reference === undefined) return undefined;
  const { snapshotId, name } = reference;
  if (snapshotId !== undefined) {
    const kept = await sandboxes.keptSnapshot(tenantId, snapshotId);
    return kept?.heldUntilMs === null ? kept : undefined;
  }
  const [kept] = await sandboxes.listKept(tenantId, { name, limit: 1 });
  return kept;
}

/** Whether it was there. The collector removes what nothing else needs of it. */
export async function releaseKept(
  { sandboxes, audit }: Pick<ControlParts, "sandboxes" | "audit">,
  { tenantId, snapshotId, sandboxId, digest }: KeptSnapshot,
): Promise<boolean> {
  const wasThere = await sandboxes.releaseKept(tenantId, snapshotId);
  if (wasThere) audit.record("snapshot/released", { tenantId, snapshotId, sandboxId, manifest: digest });
  return wasThere;
}

function snapshotView(kept: KeptSnapshot): SnapshotView {
  const { tenantId, snapshotId, name, sandboxId, digest, memory, sizeBytes, createdAtMs } = kept;
  const named = name === null ? undefined : fullName(tenantId, name);
  return {
    template: named ?? templateOf(snapshotId),
    snapshotId,
    names: named === undefined ? [] : [named],
    sandboxId,
    digest,
    memory,
    sizeBytes,
    createdAtMs,
  };
}
