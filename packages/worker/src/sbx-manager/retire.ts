// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { manifestDigest } from "@space/capability";
import {
  type ActivationRecord,
  compareIdentity,
  type Digest,
  type ExecutionIdentity,
  identityToJson,
  type RuntimeRecord,
  type SandboxId,
  sameRoute,
} from "@space/model";
import { endEpoch, stopExecution, type WorkerParts } from "./parts.ts";
import { retires } from "./record-order.ts";

/**
 * exactly this identity serves no more: a tombstone, synced before anything else happens; then its streams end;
 * then its processes, or they stay frozen under the digest of their snapshot. A retirement of another identity than
 * the installed one changes no record. Repeating it is safe.
 */
export async function retire(
  parts: WorkerParts,
  identity: ExecutionIdentity,
  keepFrozen: Digest | null,
): Promise<void> {
  const record = parts.records.read(identity.sandboxId);
  const activation = parts.executions.find(identity.activation.id);
  const process = activation && sameRoute(activation.identity, identity) ? activation : undefined;
  parts.reports.drop(identity);
  if (record !== undefined && retires(record, identity)) {
    await retireInstalled(parts, record, process, keepFrozen);
    return;
  }
  // Never installed: only a process that was started as exactly this ends, and never the one that is installed.
  const isInstalled = record?.identity.activation.id === identity.activation.id;
  if (process !== undefined && isSame(process.identity, identity) && !isInstalled)
    await stopExecution(parts, process, "retired");
}

async function retireInstalled(
  parts: WorkerParts,
  record: RuntimeRecord,
  process: ActivationRecord | undefined,
  keepFrozen: Digest | null,
): Promise<void> {
  const { identity } = record;
  const isKept = process !== undefined && keepFrozen !== null && mayKeep(process, keepFrozen);
  // Before the tombstone, so that no crash in between lets the kept process be swept. It admits nothing since the pause.
  if (isKept && process.phase !== "kept") parts.executions.change(identity.activation.id, { phase: "kept" });
  if (record.state === "installed") {
    const cutStreams = endEpoch(parts, record, { state: "retired" });
    parts.audit.record("execution/retired", {
      identity: identityToJson(identity),
      keptFrozen: isKept,
      cutStreams,
    });
  }
  if (process !== undefined && !isKept) await stopExecution(parts, process, "retired");
}

function isSame(a: ExecutionIdentity, b: ExecutionIdentity): boolean {
  return compareIdentity(a, b) === "identical";
}

function mayKeep({ phase, manifest }: ActivationRecord, keepFrozen: Digest): boolean {
  const isFrozen = phase === "snapshotted" || phase === "kept";
  return isFrozen && manifest !== null && manifestDigest(manifest) === keepFrozen;
}

/** Ends the processes that were kept frozen for the sandbox under this manifest; others stay (incident 1). */
export async function discard(parts: WorkerParts, sandboxId: SandboxId, manifest: Digest): Promise<void> {
  parts.handOvers.drop(manifest);
  for (const activation of parts.executions.ofSandbox(sandboxId)) {
    const isKept = activation.phase === "kept" && activation.manifest !== null;
    if (isKept && manifestDigest(activation.manifest) === manifest)
      await stopExecution(parts, activation, "discarded");
  }
}
