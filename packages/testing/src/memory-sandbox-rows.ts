// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ChainToken,
  type ChangeOutcome,
  type ChangeRequest,
  type Claim,
  type CommittedManifest,
  type Digest,
  type ExecutionIdentity,
  type ExecutionRecord,
  firstGeneration,
  freezeIdentity,
  type Generation,
  type ListSandboxes,
  type NewSandbox,
  type SandboxChange,
  type SandboxRecord,
  type SandboxState,
  type SealedSegment,
  type SideEffect,
  type SnapshotHead,
  type StoredSnapshot,
} from "@space/model";

/** Everything that is stored about one sandbox, besides its orders. */
export interface SandboxRow {
  record: SandboxRecord;
  changedAtMs: number;
  /** Public key of each generation whose certificate was published. */
  readonly publicKeys: Map<bigint, string>;
  /** The newest first, like the segments. */
  readonly certificates: ChainToken[];
  readonly manifests: Map<Digest, { readonly countersigned: string; readonly generation: Generation }>;
  segments: readonly SealedSegment[];
}

export const liveStates: ReadonlySet<SandboxState> = new Set(["creating", "running", "pausing", "resuming"]);

const from: Readonly<Record<SandboxChange["kind"], readonly SandboxState[]>> = {
  publish: ["creating", "resuming"],
  fail: ["creating"],
  "claim-pause": ["running"],
  "claim-snapshot": ["running"],
  "keep-snapshot": ["pausing"],
  "abort-pause": ["pausing"],
  "commit-pause": ["pausing"],
  "commit-move": ["pausing"],
  "claim-resume": ["paused", "lost"],
  "abandon-resume": ["resuming"],
  lose: ["running", "pausing"],
  "claim-kill": ["creating", "running", "pausing", "paused", "resuming", "failed", "lost"],
  "finish-kill": ["killing"],
  "set-end": ["running"],
  "take-over": ["creating", "pausing", "resuming", "killing"],
  "forget-frozen": ["paused"],
};

/** A new row, as `begin` writes it. */
export function newRow(sandbox: NewSandbox): SandboxRow {
  const { identity, claim, idempotency: _key, origin = null, ...rest } = sandbox;
  const record: SandboxRecord = {
    ...rest,
    sandboxId: identity.sandboxId,
    state: "creating",
    revision: 1,
    generation: firstGeneration,
    execution: { identity: freezeIdentity(identity), state: "starting", publicKey: null },
    goesOn: false,
    origin,
    claim,
    startedAtMs: sandbox.createdAtMs,
    certificateHead: null,
    snapshot: null,
    lostGeneration: null,
    reason: null,
  };
  return {
    record,
    changedAtMs: sandbox.createdAtMs,
    publicKeys: new Map(),
    certificates: [],
    manifests: new Map(),
    segments: [],
  };
}

/** Whether the change may be made on the row as it is now: the condition of the write. */
export function mayChange({ record }: SandboxRow, { on, change }: ChangeRequest): boolean {
  if (record.revision !== on.revision || !from[change.kind].includes(record.state)) return false;
  if (change.kind === "publish") return record.certificateHead === change.certificate.previous;
  if (change.kind === "keep-snapshot") return record.goesOn;
  if (change.kind === "commit-pause") return !record.goesOn && follows(record, change.manifest);
  if (change.kind === "commit-move")
    return (
      !record.goesOn &&
      follows(record, change.manifest) &&
      record.generation + 1n === change.identity.generation
    );
  if (change.kind !== "claim-resume") return true;
  return record.snapshot !== null && record.generation + 1n === change.identity.generation;
}

function follows({ snapshot }: SandboxRecord, { previous }: CommittedManifest): boolean {
  return (snapshot?.digest ?? null) === previous;
}

/** The record after a change that may be made, and what else is stored with it. */
export function changeRow(row: SandboxRow, change: SandboxChange, nowMs: number): void {
  const { record } = row;
  row.record = { ...record, revision: record.revision + 1, ...changesOf(record, change) };
  row.changedAtMs = nowMs;
  if (change.kind === "publish") {
    row.publicKeys.set(record.generation, change.certificate.publicKey);
    row.certificates.unshift({ generation: record.generation, token: change.certificate.token });
  }
  if (change.kind === "commit-pause" || change.kind === "commit-move") {
    const { digest, countersigned } = change.manifest;
    row.manifests.set(digest, { countersigned, generation: record.generation });
  }
  if (change.kind === "claim-pause" || change.kind === "claim-snapshot" || change.kind === "claim-resume")
    row.segments = [...change.sealed.toReversed(), ...row.segments];
  if (change.kind === "finish-kill") {
    row.manifests.clear();
    row.segments = [];
  }
}

function changesOf(record: SandboxRecord, change: SandboxChange): Partial<SandboxRecord> {
  const { execution, snapshot } = record;
  const ended = { ...execution, state: "ended" } as const;
  switch (change.kind) {
    case "publish":
      return {
        state: "running",
        claim: null,
        certificateHead: change.certificate.digest,
        execution: { ...execution, state: "active", publicKey: change.certificate.publicKey },
        snapshot: snapshot && { ...snapshot, frozenOn: null },
        startedAtMs: change.startedAtMs,
        endAtMs: change.endAtMs,
        reason: null,
      };
    case "fail":
      return { state: "failed", claim: null, execution: ended, reason: change.reason };
    case "claim-pause":
      return { state: "pausing", claim: change.claim, goesOn: false };
    case "claim-snapshot":
      return { state: "pausing", claim: change.claim, goesOn: true };
    case "keep-snapshot":
      return {};
    case "abort-pause":
      return { state: "running", claim: null };
    case "commit-pause":
      return {
        state: "paused",
        claim: null,
        execution: ended,
        snapshot: headOf(change),
        endAtMs: change.endAtMs,
        lostGeneration: null,
      };
    case "commit-move":
      return {
        ...resuming(change.identity, change.claim),
        snapshot: headOf(change),
        lostGeneration: null,
      };
    case "claim-resume":
      return resuming(change.identity, change.claim);
    case "abandon-resume":
      return {
        state: record.lostGeneration === null ? "paused" : "lost",
        claim: null,
        execution: ended,
        reason: change.reason,
      };
    case "lose": {
      const { generation: lostGeneration } = record;
      return { state: "lost", claim: null, execution: ended, reason: change.reason, lostGeneration };
    }
    case "claim-kill":
      return { state: "killing", claim: change.claim };
    case "finish-kill":
      return { state: "killed", claim: null, execution: ended, snapshot: null, metadata: {}, variables: {} };
    case "set-end":
      return { endAtMs: change.endAtMs };
    case "take-over":
      return { claim: change.claim, execution: nextAttempt(record) };
    case "forget-frozen":
      return { snapshot: snapshot && { ...snapshot, frozenOn: null } };
  }
}

function headOf({
  manifest: { digest, memory, sizeBytes },
  frozenOn,
}: Extract<SandboxChange, { manifest: CommittedManifest }>): SnapshotHead {
  return { digest, memory, sizeBytes, frozenOn };
}

/** of what is being started; what was published keeps its identity, whoever drives its sandbox. */
function nextAttempt({ state, execution }: SandboxRecord): ExecutionRecord {
  if (state !== "creating" && state !== "resuming") return execution;
  const { activation, ...identity } = execution.identity;
  const next = { id: activation.id, attempt: activation.attempt + 1 };
  return { ...execution, identity: freezeIdentity({ ...identity, activation: next }) };
}

function resuming(identity: ExecutionIdentity, claim: Claim): Partial<SandboxRecord> {
  return {
    state: "resuming",
    claim,
    generation: identity.generation,
    execution: { identity: freezeIdentity(identity), state: "starting", publicKey: null },
  };
}

/** What names an order among those of its sandbox and worker: a newer one of the same name replaces it. */
export function subjectOf(effect: SideEffect): string {
  return effect.kind === "retire"
    ? `${effect.identity.sandboxId} ${effect.identity.placement.workerId} retire ${effect.identity.generation} ${effect.identity.activation.attempt}`
    : `${effect.sandboxId} ${effect.workerId} discard ${effect.manifest}`;
}

export const stale: ChangeOutcome = { kind: "stale" };

/** What the sandbox may be resumed from, if anything. */
export function newestSnapshot({ record, manifests }: SandboxRow): readonly StoredSnapshot[] {
  const { sandboxId, snapshot, state } = record;
  const stored = snapshot === null ? undefined : manifests.get(snapshot.digest);
  if (snapshot === null || stored === undefined || state === "killing") return [];
  return [{ sandboxId, digest: snapshot.digest, countersigned: stored.countersigned }];
}

/** Whether a list with this query has it. */
export function isListed(
  record: SandboxRecord,
  { states, metadata, template, startedAfterMs }: ListSandboxes,
): boolean {
  const shown = shownAs(record);
  return (
    shown !== undefined &&
    states.includes(shown) &&
    (template === undefined || record.template === template) &&
    (startedAfterMs === undefined || record.startedAtMs > startedAfterMs) &&
    Object.entries(metadata).every(([key, value]) => record.metadata[key] === value)
  );
}

function shownAs({ state, goesOn }: SandboxRecord): ListSandboxes["states"][number] | undefined {
  if (state === "running" || state === "lost") return state;
  if (state === "pausing" && goesOn) return "running";
  const isBroughtBack = state === "paused" || state === "pausing" || state === "resuming";
  return isBroughtBack ? "paused" : undefined;
}
