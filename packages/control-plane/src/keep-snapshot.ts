// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type ChangeOutcome,
  type KeptSnapshot,
  newSnapshotId,
  type SandboxId,
  type SandboxRecord,
} from "@space/model";
import { abortPause, whyNotCommitted } from "./abort-pause.ts";
import { askForSnapshot, claimPausing, type Pausing, workerOf } from "./claim-pausing.ts";
import { codeOf, workerFailure } from "./failures.ts";
import { type ControlParts, leave } from "./parts.ts";
import { objectsOfChain } from "./sealed-chain.ts";
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
  const worker = workerOf(parts, record);
  const pausing = await claimPausing(parts, { record, worker }, { kind: "claim-snapshot", why: "asked" });
  return pausing && parts.transitions.run(record.sandboxId, "snapshot", () => drive(parts, pausing, keeping));
}

async function drive(parts: ControlParts, pausing: Pausing, keeping: Keeping): Promise<KeptSnapshot> {
  const { claimed } = pausing;
  let kept: KeptSnapshot;
  try {
    kept = await take(parts, pausing, keeping);
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
  pausing: Pausing,
  { name, heldUntilMs }: Keeping,
): Promise<KeptSnapshot> {
  const { sandboxId, tenantId, execution, template, limits, variables } = pausing.claimed;
  const { manifest, digest, countersigned, chain, sizeBytes } = await askForSnapshot(
    parts,
    pausing,
    "snapshot",
  );
  return {
    snapshotId: newSnapshotId(parts.random),
    tenantId,
    sandboxId,
    digest,
    memory: manifest.memory === "in-snapshot" ? "in-snapshot" : "none", // nothing stays frozen
    sizeBytes,
    countersigned,
    executionPublicKey: execution.publicKey ?? "",
    objects: [...(await objectsOfChain(parts, sandboxId, chain))], // its own sandbox forgets them when it is killed
    template,
    limits,
    variables,
    name,
    heldUntilMs,
    createdAtMs: parts.clock.wallMs(),
  };
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
