// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ChangeReason,
  type Digest,
  type SandboxRecord,
  SpaceError,
  type WorkerHandle,
} from "@space/model";
import { type ControlParts, newClaim } from "./parts.ts";
import { type RestorePoint, verifyOffered } from "./restore-point.ts";
import { requireSeal, type SealPlan, storeSeal } from "./sealed-chain.ts";

/** What begins with a frozen guest, whatever becomes of it then: its row is `pausing`, and claimed by the caller. */
export interface Pausing {
  readonly claimed: SandboxRecord;
  readonly worker: WorkerHandle;
  readonly seal: SealPlan;
  /** It is moved: the worker is to hold what it saves for the one that it goes on at. */
  readonly handsOver?: boolean;
}

/** Throws `worker/unreachable` where it is not here: before anything changes. */
export function workerOf({ workers }: Pick<ControlParts, "workers">, record: SandboxRecord): WorkerHandle {
  const { workerId } = record.execution.identity.placement;
  const worker = workers.find(workerId);
  if (worker === undefined) throw new SpaceError("worker/unreachable", { workerId });
  return worker;
}

/** Undefined where the sandbox is no longer as the record says (incident 32). */
export async function claimPausing(
  parts: ControlParts,
  { record, worker }: { readonly record: SandboxRecord; readonly worker: WorkerHandle },
  { kind, why }: { readonly kind: "claim-pause" | "claim-snapshot"; readonly why: ChangeReason },
): Promise<Pausing | undefined> {
  const seal = await requireSeal(parts, record.sandboxId);
  const change = { kind, claim: newClaim(parts), sealed: seal.added };
  const outcome = await parts.sandboxes.change({ on: record, change, why });
  return outcome.kind === "won" ? { claimed: outcome.record, worker, seal } : undefined;
}

/** A snapshot that was verified. */
export interface OfferedSnapshot extends RestorePoint {
  readonly countersigned: string;
  /** The newest object of the chain that it seals. */
  readonly chain: Digest;
  /** Of all chunks, before they are sealed. */
  readonly sizeBytes: number;
}

/** Has the worker make the snapshot, and verifies it: of a pause, or of what goes on. The guest is frozen when it resolves. */
export async function askForSnapshot(
  parts: ControlParts,
  { claimed, worker, seal, handsOver = false }: Pausing,
  what: "pause" | "snapshot",
): Promise<OfferedSnapshot> {
  const { execution, tenantId, snapshot } = claimed;
  // Asked for when the claim is written: a collector that goes through this key sees the pause, or comes before it.
  const key = await parts.tenantKeys.current(tenantId);
  await storeSeal(parts, seal, key);
  const chain = seal.end.digest;
  const links = { previousManifest: snapshot?.digest ?? null, chain };
  const kept = handsOver ? { ...links, handsOver } : links;
  const asked = what === "pause" ? kept : { ...links, goesOn: true };
  const offered = await worker.control.snapshot(execution.identity, asked, key);
  const point = verifyOffered(claimed, offered, { ...links, keyId: key.keyId });
  const countersigned = parts.signer.countersign(offered.signed, point, what);
  const sizeBytes = point.manifest.filesystem.reduce((total, chunk) => total + chunk.sizeBytes, 0);
  return { ...point, countersigned, chain, sizeBytes };
}
