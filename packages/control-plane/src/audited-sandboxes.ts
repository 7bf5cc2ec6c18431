// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type {
  AuditFields,
  AuditSink,
  BeginOutcome,
  ChangeOutcome,
  ChangeReason,
  ChangeRequest,
  NewSandbox,
  SandboxChangeKind,
  SandboxRecord,
  SandboxStore,
} from "@space/model";
import { codeOf } from "./failures.ts";

/** A change with the reason that the audit log gives for it. */
export interface ReasonedChange extends ChangeRequest {
  readonly why: ChangeReason;
}

/** What changes no sandbox. */
export type SandboxReads = Omit<SandboxStore, "begin" | "change">;

/**
 * The control plane's only way to change a sandbox: each change that is written is one event of the audit log, with its
 * reason, and a change without a reason does not compile.
 */
export interface AuditedSandboxes extends SandboxReads {
  begin(sandbox: NewSandbox): Promise<BeginOutcome>;
  change(request: ReasonedChange): Promise<ChangeOutcome>;
}

export function auditedSandboxes(store: SandboxStore, audit: AuditSink): AuditedSandboxes {
  const record = (change: SandboxChangeKind, reason: ChangeReason, after: SandboxRecord): void => {
    const { sandboxId, state, generation, revision } = after;
    audit.record("sandbox/changed", {
      sandboxId,
      change,
      state,
      generation: generation.toString(),
      revision,
      reason,
    });
  };
  const unknown =
    (facts: Omit<AuditFields["sandbox/change-unknown"], "code">) =>
    (error: unknown): never => {
      audit.record("sandbox/change-unknown", { ...facts, code: codeOf(error) });
      throw error;
    };
  return {
    ...reads(store),
    begin: async (sandbox) => {
      const { sandboxId } = sandbox.identity;
      const outcome = await store
        .begin(sandbox)
        .catch(unknown({ sandboxId, change: "begin", onRevision: 0, reason: "asked" }));
      if (outcome.kind === "begun") record("begin", "asked", outcome.record);
      return outcome;
    },
    change: async ({ on, change, effects, why }) => {
      const { sandboxId, revision } = on;
      const outcome = await store
        .change({ on, change, ...(effects && { effects }) })
        .catch(unknown({ sandboxId, change: change.kind, onRevision: revision, reason: why }));
      if (outcome.kind === "won") record(change.kind, why, outcome.record);
      return outcome;
    },
  };
}

function reads(store: SandboxStore): SandboxReads {
  return {
    read: (sandboxId) => store.read(sandboxId),
    list: (tenantId, query) => store.list(tenantId, query),
    due: (nowMs, limit) => store.due(nowMs, limit),
    abandoned: (nowMs, limit) => store.abandoned(nowMs, limit),
    recoverable: (nowMs, limit) => store.recoverable(nowMs, limit),
    onWorker: (workerId) => store.onWorker(workerId),
    live: () => store.live(),
    load: () => store.load(),
    manifest: (sandboxId, digest) => store.manifest(sandboxId, digest),
    chain: (sandboxId) => store.chain(sandboxId),
    links: (sandboxId, range) => store.links(sandboxId, range),
    segments: (sandboxId, limit) => store.segments(sandboxId, limit),
    snapshots: (tenantId, page) => store.snapshots(tenantId, page),
    pausing: (tenantId) => store.pausing(tenantId),
    keptSnapshot: (tenantId, snapshotId) => store.keptSnapshot(tenantId, snapshotId),
    listKept: (tenantId, query) => store.listKept(tenantId, query),
    releaseKept: (tenantId, snapshotId) => store.releaseKept(tenantId, snapshotId),
    neededSnapshots: (tenantId, page) => store.neededSnapshots(tenantId, page),
    purgeKept: (nowMs, limit) => store.purgeKept(nowMs, limit),
    enqueue: (effects) => store.enqueue(effects),
    pending: (query) => store.pending(query),
    postpone: (id, notBeforeMs) => store.postpone(id, notBeforeMs),
    purge: (beforeMs, limit) => store.purge(beforeMs, limit),
  };
}
