// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type ActivationRecord,
  evidenceToText,
  type RunningExecution,
} from "@space/model";
import { eachLimited } from "./each-limited.ts";
import { stopExecution, type WorkerParts } from "./parts.ts";

/**
 * What a daemon does first: compares what it remembers with what really runs. Processes whose evidence is unchanged go
 * on, and never notice; what has ended, or is not what was recorded, is forgotten and reported; leftovers are swept.
 * Then the bridge is connected. Returns how many processes go on.
 */
export async function readopt(parts: WorkerParts): Promise<number> {
  const running = new Map(
    (await parts.substrate.list()).map((execution) => [execution.activationId, execution]),
  );
  for (const activation of parts.executions.all()) {
    const { id } = activation.identity.activation;
    const found = running.get(activation.startedAs);
    if (found !== undefined && isRecorded(parts, activation, found) && isWanted(parts, activation)) {
      parts.audit.record("execution/readopted", {
        activationId: id,
        sandboxId: activation.identity.sandboxId,
      });
    } else {
      // Releases what is left of it, also where the process itself is gone.
      await stopExecution(parts, activation, found === undefined ? "gone" : "not wanted");
    }
  }
  const kept = parts.executions.all();
  await parts.substrate.sweep(new Set(kept.map(({ startedAs }) => startedAs)));
  await eachLimited(kept, parts.limits.adoptionsAtOnce, (activation) => keepFrozen(parts, activation));
  await parts.bridge.connect();
  reportLost(parts);
  parts.records.prune(parts.limits.retiredRecords);
  return parts.executions.all().length;
}

/** The same process, executable, socket and boot of the host as at activation: anything else is not it. */
function isRecorded(parts: WorkerParts, activation: ActivationRecord, found: RunningExecution): boolean {
  if (evidenceToText(found.evidence) === evidenceToText(activation.evidence)) return true;
  parts.audit.record("endpoint/refused", {
    activationId: activation.identity.activation.id,
    problem: "evidence differs from the record",
  });
  return false;
}

/** A retired execution's process was to end, unless it is kept frozen. */
function isWanted(parts: WorkerParts, { identity, phase }: ActivationRecord): boolean {
  const record = parts.records.read(identity.sandboxId);
  const isRetired = record?.state === "retired" && record.identity.activation.id === identity.activation.id;
  return phase === "kept" || !isRetired;
}

/** A crash between a thaw and its record must not leave a frozen execution running. */
async function keepFrozen(parts: WorkerParts, activation: ActivationRecord): Promise<void> {
  const isFrozen = activation.phase !== "running" && activation.phase !== "pausing";
  if (isFrozen && !(await parts.substrate.freeze(activation.startedAs)))
    await stopExecution(parts, activation, "could not go on");
}

/** Installed, but nothing runs: it ended while nobody watched. */
function reportLost(parts: WorkerParts): void {
  for (const record of parts.records.all()) {
    if (record.state !== "installed") continue;
    const { id } = record.identity.activation;
    if (parts.executions.find(id) === undefined) report(parts, record.identity, id);
  }
}

function report(
  parts: WorkerParts,
  identity: Parameters<WorkerParts["reports"]["add"]>[0]["identity"],
  activationId: ActivationId,
): void {
  const reason = "gone at start";
  parts.audit.record("execution/exited", { activationId, reason });
  parts.reports.add({ identity, what: "exited", reason });
}
