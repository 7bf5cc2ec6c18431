// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Generation } from "../generation.ts";
import type { ExecutionIdentity } from "../identity.ts";
import type { Digest, SandboxId, TenantId, WorkerId } from "../ids.ts";
import type { SandboxState } from "../lifecycle.ts";
import type { SealedSegment } from "../sealed-segment.ts";
import type { MemoryKept } from "../snapshot.ts";
import type { KeptSnapshot, KeptSnapshotStore, SandboxOrigin } from "./kept-snapshots.ts";
import type { ListSandboxes } from "./sandbox-service.ts";
import type { ExecutionLimits } from "./substrate.ts";

/**
 * Who drives a transitional state, and until when nobody else may. Wall clock. R-4: it drives the lifecycle alone, and is
 * no part of any identity; what an owner writes after another has taken over is refused, by the revision.
 */
export interface Claim {
  /** The replica, a slash, and which of its runs. */
  readonly owner: string;
  readonly untilMs: number;
}

/** One generation of a sandbox. `starting` until its certificate is published; `ended` for ever. */
export interface ExecutionRecord {
  readonly identity: ExecutionIdentity;
  readonly state: "starting" | "active" | "ended";
  /** The execution's Ed25519 public key (raw, base64url); null before it is published. */
  readonly publicKey: string | null;
}

/** The newest committed snapshot. */
export interface SnapshotHead {
  readonly digest: Digest;
  /** What the signed manifest says was there when it was made. */
  readonly memory: MemoryKept;
  readonly sizeBytes: number;
  /** The worker that still holds the frozen processes; null when only the files are left. */
  readonly frozenOn: WorkerId | null;
}

/** One sandbox as it is stored. */
export interface SandboxRecord {
  readonly sandboxId: SandboxId;
  readonly tenantId: TenantId;
  readonly template: string;
  readonly state: SandboxState;
  /** One more at each write: a decision is written only if this is still what it was made on (incident 32). */
  readonly revision: number;
  /** the highest ever allotted, also after a failed start. */
  readonly generation: Generation;
  /** The execution of that generation. */
  readonly execution: ExecutionRecord;
  /** `pausing` for a snapshot alone: it goes on after it, and is shown as running. */
  readonly goesOn: boolean;
  /** the snapshot that it began with; null where it began empty. */
  readonly origin: SandboxOrigin | null;
  /** Present exactly in the transitional states. */
  readonly claim: Claim | null;
  readonly createdAtMs: number;
  /** Start of the present or last run. */
  readonly startedAtMs: number;
  readonly endAtMs: number;
  readonly onTimeout: "kill" | "pause";
  readonly keepMemory: boolean;
  readonly autoResume: boolean;
  readonly autoRecover: boolean;
  /** The timeout that it was created with. */
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly limits: ExecutionLimits;
  /** the newest certificate; null before the first is published. */
  readonly certificateHead: Digest | null;
  readonly snapshot: SnapshotHead | null;
  /** The generation that was lost last and whose state no snapshot has; null again when a later one is committed. */
  readonly lostGeneration: Generation | null;
  /** Why it failed or was lost. */
  readonly reason: string | null;
}

/** What must reach a worker although it, or this process, may be away now. Each is safe to repeat. */
export type SideEffect =
  /** The execution's worker is told to retire it. A later order for the same execution replaces an earlier one. */
  | { readonly kind: "retire"; readonly identity: ExecutionIdentity; readonly keepFrozen: Digest | null }
  /** The worker is told to end the processes that it kept frozen under this manifest. */
  | {
      readonly kind: "discard";
      readonly sandboxId: SandboxId;
      readonly workerId: WorkerId;
      readonly manifest: Digest;
    };

/** A side effect on its way. */
export interface PendingSideEffect {
  /** Its position in the receiver's feed: grows with every order, and is new when the order was replaced. */
  readonly id: number;
  readonly effect: SideEffect;
  readonly attempts: number;
  /** Wall clock: not tried again before. */
  readonly notBeforeMs: number;
}

/** One link of the chain, as signed. */
export interface PublishedCertificate {
  readonly token: string;
  readonly digest: Digest;
  readonly previous: Digest | null;
  readonly publicKey: string;
}

/** A verified and countersigned manifest, ready to be committed. */
export interface CommittedManifest {
  readonly countersigned: string;
  readonly digest: Digest;
  readonly previous: Digest | null;
  readonly memory: MemoryKept;
  readonly sizeBytes: number;
}

/** A change of one sandbox. Each names the states that it may be made in; the schema has the same table. */
export type SandboxChange =
  /** creating, resuming → running. Wins only if the certificate's `previous` is the stored head. Frozen processes are gone after it. */
  | {
      readonly kind: "publish";
      readonly certificate: PublishedCertificate;
      readonly startedAtMs: number;
      readonly endAtMs: number;
    }
  /** creating → failed. Releases the idempotency key: a key names a success. */
  | { readonly kind: "fail"; readonly reason: string }
  /** running → pausing. `sealed` is remembered before an object of it can be anywhere, so that a kill finds them all. */
  | { readonly kind: "claim-pause"; readonly claim: Claim; readonly sealed: readonly SealedSegment[] }
  /** running → pausing, for a snapshot of what goes on. It can be aborted and not committed. */
  | { readonly kind: "claim-snapshot"; readonly claim: Claim; readonly sealed: readonly SealedSegment[] }
  /** pausing for a snapshot: it is kept from now on. What it was taken of is as it was. */
  | { readonly kind: "keep-snapshot"; readonly kept: KeptSnapshot }
  /** pausing → running, same execution. */
  | { readonly kind: "abort-pause" }
  /** pausing (not for a snapshot alone) → paused. Wins only if the manifest's `previous` is the stored head. The execution has ended. */
  | {
      readonly kind: "commit-pause";
      readonly manifest: CommittedManifest;
      readonly frozenOn: WorkerId | null;
      readonly endAtMs: number;
    }
  /**
   * pausing → resuming: a pause that is committed and the next generation's start, in one write, so that a sandbox that
   * is moved is never nobody's. Wins only if the manifest's `previous` is the stored head. Its end stays as it is.
   */
  | {
      readonly kind: "commit-move";
      readonly manifest: CommittedManifest;
      readonly frozenOn: WorkerId | null;
      readonly identity: ExecutionIdentity;
      readonly claim: Claim;
    }
  /** paused, lost (with a snapshot) → resuming, with the next generation's identity. */
  | {
      readonly kind: "claim-resume";
      readonly identity: ExecutionIdentity;
      readonly claim: Claim;
      readonly sealed: readonly SealedSegment[];
    }
  /** resuming → what it was resumed from: paused, intact, or lost. That generation has ended. */
  | { readonly kind: "abandon-resume"; readonly reason: string }
  /** running, pausing → lost */
  | { readonly kind: "lose"; readonly reason: string }
  /** any but killed → killing: a tombstone from here on (incident 17). */
  | { readonly kind: "claim-kill"; readonly claim: Claim }
  /** killing → killed. What the caller stored is forgotten. */
  | { readonly kind: "finish-kill" }
  /** running: another end. */
  | { readonly kind: "set-end"; readonly endAtMs: number }
  /** Any transitional state: another owner drives it on. R-3: what it was starting is its next attempt from now on. */
  | { readonly kind: "take-over"; readonly claim: Claim }
  /** paused: the frozen processes are gone, the files remain. */
  | { readonly kind: "forget-frozen" };

export interface ChangeRequest {
  /** The record that the decision was made on. */
  readonly on: Pick<SandboxRecord, "sandboxId" | "revision">;
  readonly change: SandboxChange;
  /** Written with the change, or not at all. */
  readonly effects?: readonly SideEffect[];
}

export type ChangeOutcome =
  | {
      readonly kind: "won";
      readonly record: SandboxRecord;
      readonly effects: readonly PendingSideEffect[];
    }
  /** The record is no longer as it was, or its state forbids the change: nothing was written. */
  | { readonly kind: "stale" }
  /** The tenant has this many sandboxes that run or are about to. */
  | { readonly kind: "limit"; readonly limit: number };

export interface NewSandbox
  extends Pick<
    SandboxRecord,
    | "tenantId"
    | "template"
    | "createdAtMs"
    | "endAtMs"
    | "onTimeout"
    | "keepMemory"
    | "autoResume"
    | "autoRecover"
    | "timeoutMs"
    | "metadata"
    | "variables"
    | "limits"
  > {
  /** Its sandbox id is the new one's; its generation the first. */
  readonly identity: ExecutionIdentity;
  readonly claim: Claim;
  /** What it begins with; absent: it begins empty. */
  readonly origin?: SandboxOrigin;
  /** The same key with the same fingerprint of the request gets the first answer. */
  readonly idempotency?: { readonly key: string; readonly fingerprint: Digest };
}

export type BeginOutcome =
  | { readonly kind: "begun"; readonly record: SandboxRecord }
  | { readonly kind: "limit"; readonly limit: number }
  /** The snapshot that it was to begin with is not there any more. */
  | { readonly kind: "origin-gone" }
  | { readonly kind: "repeated"; readonly sandboxId: SandboxId; readonly fingerprint: Digest };

/** A manifest with the key that must have signed it. */
export interface StoredManifest {
  readonly countersigned: string;
  readonly executionPublicKey: string;
}

/** The newest snapshot of a sandbox that may still be resumed from it. */
export interface StoredSnapshot {
  readonly sandboxId: SandboxId;
  readonly digest: Digest;
  readonly countersigned: string;
}

/** newest first, as `verifyChain` takes them. */
export interface StoredChain {
  readonly certificates: readonly string[];
  /** As the control plane countersigned them. */
  readonly manifests: readonly string[];
}

/** links of a chain with their generations, the oldest first. */
export interface ChainLinks {
  readonly certificates: readonly ChainToken[];
  /** As the control plane countersigned them. */
  readonly manifests: readonly ChainToken[];
}

export interface ChainToken {
  readonly generation: Generation;
  readonly token: string;
}

/**
 * The durable truth about sandboxes and executions; the control plane is its only writer. Every change is one
 * conditional write, durable before the promise resolves, whose outcome says whether it won; side effects are written
 * with it. Calls may be made concurrently; a read sees every write that resolved before it. Throws `store/failed`
 * when the store cannot answer: never confused with absent.
 */
export interface SandboxStore extends KeptSnapshotStore {
  read(sandboxId: SandboxId): Promise<SandboxRecord | undefined>;
  /** A tenant's sandboxes by start time, then id: `running`, `lost`, and as `paused` what a connect brings back whole. */
  list(tenantId: TenantId, query: ListSandboxes): Promise<readonly SandboxRecord[]>;
  /** A new row `creating` with generation 1. Counts the tenant's limit in the same write. */
  begin(sandbox: NewSandbox): Promise<BeginOutcome>;
  change(request: ChangeRequest): Promise<ChangeOutcome>;

  /** Running sandboxes past their end, and lost ones that nothing will bring back, oldest end first. */
  due(nowMs: number, limit: number): Promise<readonly SandboxRecord[]>;
  /** Transitional sandboxes whose claim has run out by then, the longest ago first. */
  abandoned(nowMs: number, limit: number): Promise<readonly SandboxRecord[]>;
  /** Lost sandboxes that are to be recovered, have a snapshot, and are not past their end. */
  recoverable(nowMs: number, limit: number): Promise<readonly SandboxRecord[]>;
  /** Sandboxes with an execution that has not ended on this worker, or frozen processes there. */
  onWorker(workerId: WorkerId): Promise<readonly SandboxRecord[]>;
  /** Every sandbox, of all tenants, that holds something at a worker or is in between: all but plain paused and dead ones. */
  live(): Promise<readonly SandboxRecord[]>;
  /** Executions that have not ended, and frozen ones, by worker. */
  load(): Promise<ReadonlyMap<WorkerId, number>>;

  manifest(sandboxId: SandboxId, digest: Digest): Promise<StoredManifest | undefined>;
  /** everything that was signed about the sandbox. */
  chain(sandboxId: SandboxId): Promise<StoredChain>;
  /** certificates of generations after `after` and not after `through`, manifests of `after` and later but before `through`. */
  links(
    sandboxId: SandboxId,
    range: { readonly after: bigint; readonly through: bigint },
  ): Promise<ChainLinks>;
  /** the objects of its sealed chain, the newest first. */
  segments(sandboxId: SandboxId, limit: number): Promise<readonly SealedSegment[]>;
  /**
   * The newest snapshots of a tenant's sandboxes, but of those that are being killed, in the order of their ids: those behind
   * `after`, `limit` at most.
   */
  snapshots(
    tenantId: TenantId,
    page: { readonly after: SandboxId | null; readonly limit: number },
  ): Promise<readonly StoredSnapshot[]>;
  /** The tenant's sandboxes that are `pausing` now. */
  pausing(tenantId: TenantId): Promise<readonly Pick<SandboxRecord, "sandboxId" | "revision">[]>;

  /** Adds side effects without a change of state (a late start that must be torn down). */
  enqueue(effects: readonly SideEffect[]): Promise<readonly PendingSideEffect[]>;
  /** In the order in which they were written. */
  pending(query: PendingQuery): Promise<readonly PendingSideEffect[]>;
  /** Failed: tried again not before then. */
  postpone(id: number, notBeforeMs: number): Promise<void>;

  /** Removes tombstones that ended before then and have nothing pending. Returns how many. */
  purge(beforeMs: number, limit: number): Promise<number>;
}

export interface PendingQuery {
  readonly workerId?: WorkerId;
  readonly sandboxId?: SandboxId;
  /** Only those that may be tried by then. */
  readonly dueMs?: number;
  /** Only those behind this position. */
  readonly afterId?: number;
  readonly limit: number;
}
