// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type ChangeOutcome,
  type KeptSnapshot,
  newSnapshotId,
  type SandboxId,
  type SandboxRecord,
  SpaceError,
  type WorkerHandle,
} from "@space/model";
import { abortPause, whyNotCommitted } from "./abort-pause.ts";
import { codeOf, workerFailure } from "./failures.ts";
import { type ControlParts, leave, newClaim } from "./parts.ts";
import { type RestorePoint, verifyOffered } from "./restore-point.ts";
import { objectsOfChain, requireSeal, type SealPlan, storeSeal } from "./sealed-chain.ts";
import { whenRunning } from "./turns.ts";

/** How the snapshot is kept: see `KeptSnapshot`. */
export type Keeping = Pick<KeptSnapshot, "name" | "heldUntilMs">;

export interface Taken {
  readonly kept: KeptSnapshot;
  /** What it was taken of, as it was when it was begun. */
  readonly source: SandboxRecord;
}

/**
 * Takes a snapshot of a running sandbox, which goes on. Others' transitions of it are waited for. Throws `sandbox/state`
 * when it does not run; when the snapshot fails, the worker's failure, with the sandbox running on.
 */
export function keepSnapshot(
  parts: ControlParts,
  of: { readonly caller: ApiCaller; readonly sandboxId: SandboxId },
  keeping: Keeping,
): Promise<Taken> {
  return whenRunning(parts, of, async (source) => {
    const kept = await keepOfRunning(parts, source, keeping);
    return kept && { kept, source };
  });
}

/**
 * A pause that is never committed: its only end is that of one that was aborted. So whatever fails, or whoever takes it
 * over, the guest runs on, and between its freeze and its thaw the snapshot is kept, in one write, or it is not.
 */
async function keepOfRunning(
  parts: ControlParts,
  record: SandboxRecord,
  keeping: Keeping,
): Promise<KeptSnapshot | undefined> {
  const { workerId } = record.execution.identity.placement;
  const worker = parts.workers.find(workerId);
  if (worker === undefined) throw new SpaceError("worker/unreachable", { workerId });
  const seal = await requireSeal(parts, record.sandboxId);
  const change = { kind: "claim-snapshot", claim: newClaim(parts), sealed: seal.added } as const;
  const outcome = await parts.sandboxes.change({ on: record, change, why: "asked" });
  if (outcome.kind !== "won") return undefined;
  const { record: claimed } = outcome;
  return parts.transitions.run(record.sandboxId, "snapshot", () =>
    drive(parts, { claimed, worker, seal, keeping }),
  );
}

interface SnapshotPlan {
  readonly claimed: SandboxRecord;
  readonly worker: WorkerHandle;
  readonly seal: SealPlan;
  readonly keeping: Keeping;
}

async function drive(parts: ControlParts, plan: SnapshotPlan): Promise<KeptSnapshot> {
  const { claimed, keeping } = plan;
  let kept: KeptSnapshot;
  try {
    kept = await take(parts, plan, keeping);
  } catch (cause) {
    await abortPause(parts, claimed, `failed: ${codeOf(cause)}`);
    throw workerFailure(cause, "snapshot");
  }
  const outcome = await keep(parts, claimed, kept);
  if (outcome.kind !== "won") throw await whyNotCommitted(parts, claimed);
  await abortPause(parts, outcome.record, "done"); // never throws: what is kept is kept, whenever the guest goes on
  return kept;
}

/** Everything up to the write. The guest is frozen when it resolves. */
async function take(
  parts: ControlParts,
  { claimed, worker, seal }: SnapshotPlan,
  { name, heldUntilMs }: Keeping,
): Promise<KeptSnapshot> {
  const { sandboxId, tenantId, execution, template, limits, variables } = claimed;
  // Asked for when the claim is written: see the pause's.
  const key = await parts.tenantKeys.current(tenantId);
  await storeSeal(parts, seal, key);
  const links = { previousManifest: claimed.snapshot?.digest ?? null, chain: seal.end.digest };
  const offered = await worker.control.snapshot(execution.identity, { ...links, goesOn: true }, key);
  const point = verifyOffered(claimed, offered, { ...links, keyId: key.keyId });
  return {
    snapshotId: newSnapshotId(parts.random),
    tenantId,
    sandboxId,
    ...keptPart(point),
    countersigned: parts.signer.countersign(offered.signed, point, "snapshot"),
    executionPublicKey: execution.publicKey ?? "",
    objects: await objectsOfSealed(parts, sandboxId, links.chain),
    template,
    limits,
    variables,
    name,
    heldUntilMs,
    createdAtMs: parts.clock.wallMs(),
  };
}

/** Of the memory only what is in it: nothing stays frozen. */
function keptPart({ manifest, digest }: RestorePoint): Pick<KeptSnapshot, "digest" | "memory" | "sizeBytes"> {
  const memory = manifest.memory === "in-snapshot" ? "in-snapshot" : "none";
  const sizeBytes = manifest.filesystem.reduce((total, chunk) => total + chunk.sizeBytes, 0);
  return { digest, memory, sizeBytes };
}

/** the chain that is sealed in it, which its own sandbox forgets when it is killed. */
async function objectsOfSealed(
  parts: ControlParts,
  sandboxId: SandboxId,
  chain: KeptSnapshot["digest"],
): Promise<KeptSnapshot["objects"]> {
  return [...(await objectsOfChain(parts, sandboxId, chain))];
}

async function keep(parts: ControlParts, on: SandboxRecord, kept: KeptSnapshot): Promise<ChangeOutcome> {
  try {
    return await parts.sandboxes.change({ on, change: { kind: "keep-snapshot", kept }, why: "done" });
  } catch (error) {
    await abortPause(parts, on, `failed: ${codeOf(error)}`); // changes nothing where it was written after all
    leave(parts, on.sandboxId, "keep a snapshot", error); // then the recovery lets the guest go on
    throw error;
  }
}
