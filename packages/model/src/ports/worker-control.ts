// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity, SubstrateName } from "../identity.ts";
import type { Digest, SandboxId, TenantId, WorkerId } from "../ids.ts";
import type { LeaseAnswer, LeaseRequest } from "../lease.ts";
import type { MemoryKept, SnapshotManifest } from "../snapshot.ts";
import type { StoreSuccession } from "../store-succession.ts";
import type { TenantKey } from "../tenant-key.ts";
import type { ReceiverFeed } from "./receiver-feed.ts";
import type { ExecutionLimits } from "./substrate.ts";

export interface ActivateRequest {
  readonly identity: ExecutionIdentity;
  readonly tenantId: TenantId;
  readonly template: string;
  readonly limits: ExecutionLimits;
  /** Sandbox-wide variables of the user's processes. */
  readonly variables: Readonly<Record<string, string>>;
  /** The snapshot to begin from, with its digest; the worker verifies it before use. */
  readonly from?: {
    readonly manifest: SnapshotManifest;
    readonly digest: Digest;
    readonly memory: MemoryKept;
    /** The version that the manifest names. For this restore alone: it is written nowhere. */
    readonly key: TenantKey;
    /**
     * the signed head of the sandbox's chain. It names the manifest, so that no older one passes for the newest. Of a
     * sandbox that begins with another one's snapshot (generation 1) it is the signed origin, which names that manifest.
     */
    readonly head: string;
    /**
     * the object that the chain ends with now, where executions were certified after this snapshot (and died without
     * one); null where the snapshot's own chain ends with the newest certificate, and in generation 1.
     */
    readonly since: Digest | null;
    /** Where the worker that the manifest names is, and the grant with which it gives its chunks. Absent: all come from the store. */
    readonly peer?: { readonly host: string; readonly port: number; readonly grant: string };
  };
}

export interface ActivateAnswer {
  /** the new execution's Ed25519 public key (raw, base64url). */
  readonly publicKey: string;
  /** Whether the processes of the snapshot go on. False after a cold start. */
  readonly memory: boolean;
}

/** what a snapshot comes after. */
export interface SnapshotLinks {
  readonly previousManifest: Digest | null;
  /** The object that its sealed chain ends with; the worker finds it in the object store. */
  readonly chain: Digest;
  /** The execution goes on after it, so nothing of it will stay frozen: what is not in the snapshot is not kept. */
  readonly goesOn?: boolean;
  /** It goes on at another worker, which may ask this one for its chunks: they are held for a moment. */
  readonly handsOver?: boolean;
}

export interface SnapshotAnswer {
  readonly manifest: SnapshotManifest;
  /** The manifest as signed by the execution's key: compact JWS. */
  readonly signed: string;
}

/**
 * The control plane's commands to one worker. Each is safe to repeat with the same arguments; each resolves only when
 * the worker has made its effect durable. Throws `worker/unreachable` when the answer did not come: the effect is then unknown.
 */
export interface WorkerControl {
  /** Starts the execution. It serves nobody before its certificate is installed. */
  activate(request: ActivateRequest): Promise<ActivateAnswer>;
  /**
   * Verifies the chain that is to be sealed in the snapshot, ends the epoch, stops admitting, flushes, freezes and
   * snapshots, sealed with this key of the tenant, which is written nowhere. The guest stays frozen until the next command.
   */
  snapshot(identity: ExecutionIdentity, follows: SnapshotLinks, key: TenantKey): Promise<SnapshotAnswer>;
  /** A pause that lost, or the end of a snapshot of what goes on: the frozen guest runs and admits again under the same identity, in a new epoch. */
  abortPause(identity: ExecutionIdentity): Promise<void>;
  /** What it serves and keeps frozen now: asked for where the digest of its record set is not the one expected. */
  inventory(): Promise<WorkerInventory>;
}

/**
 * What a receiver does with what its feed says (see `ReceiverFeed`). Each is safe to repeat, verified by the receiver
 * itself, whoever carried it, and resolves only when its effect is durable.
 */
export interface RecordReceiver extends KeyBundleReceiver {
  /** the certificate becomes the runtime record. */
  install(certificate: string): Promise<void>;
  /** a signed retirement. `keepFrozen`: the processes stay frozen under the manifest's digest; otherwise they end. */
  retire(retirement: string, keepFrozen: Digest | null): Promise<void>;
  /** Ends processes that were kept frozen for this sandbox under this manifest; others stay (incident 1). */
  discard(sandboxId: SandboxId, manifest: Digest): Promise<void>;
  /** a grant counts only for the request that it names. Throws `lease/refused`. */
  takeLease(grant: string): Promise<void>;
}

/** A worker as the control plane sees it. */
export interface WorkerHandle {
  readonly workerId: WorkerId;
  readonly control: WorkerControl;
  readonly keys: KeyBundleReceiver;
  readonly feed: ReceiverFeed;
  readonly endpoint: { readonly host: string; readonly port: number };
  /** Most executions that it holds at once, frozen ones included. */
  readonly capacity: number;
  readonly substrate: SubstrateName;
  /** the pod that this worker is, on Kubernetes. A pod that replaces it at its address is another. */
  readonly podUid?: string | undefined;
}

/** The workers that are connected now. */
export interface WorkerDirectory {
  find(workerId: WorkerId): WorkerHandle | undefined;
  all(): readonly WorkerHandle[];
}

/** What a worker tells the control plane unasked. */
export interface WorkerReport {
  readonly identity: ExecutionIdentity;
  readonly what: "exited";
  readonly reason: string;
}

/** Said when a worker (re)connects, so that both sides agree on what runs. */
export interface WorkerInventory {
  readonly installed: readonly ExecutionIdentity[];
  readonly frozen: readonly { readonly sandboxId: SandboxId; readonly manifest: Digest }[];
}

/** takes newer verification bundles. */
export interface KeyBundleReceiver {
  /**
   * Verified against the pinned root and durable before it resolves; from then on nothing counts that a key signed which
   * it leaves out. Throws `bundle/refused`, and `bundle/rollback` for a lower version than the held one.
   */
  replaceKeys(bundle: string): Promise<void>;
}

/** A worker's first word on each new link. */
export interface WorkerHello {
  readonly workerId: WorkerId;
  readonly substrate: SubstrateName;
  /** */
  readonly podUid?: string | undefined;
  /** Most executions that it holds at once, frozen ones included. */
  readonly capacity: number;
  readonly freeSlots: number;
  /** Where gateways reach its node-api. */
  readonly endpoint: { readonly host: string; readonly port: number };
  readonly inventory: WorkerInventory;
  /** version of the verification bundle that it holds; 0 for none. */
  readonly bundleVersion: number;
  /** The highest position of its feed that it has applied; 0 for none. */
  readonly feedPosition: number;
  /** Shows that its store is the one that this worker was last connected with. */
  readonly store: StoreSuccession;
}

export interface WorkerWelcome {
  /** The newest verification bundle where the worker's is older; the worker makes it durable before it serves. */
  readonly bundle: string | null;
}

/** What a worker tells the control plane, over the link that it dialled. */
export interface WorkerPresence {
  /** Throws `worker/superseded` for a copied or older store, and then for every other hello of it. */
  hello(hello: WorkerHello): Promise<WorkerWelcome>;
  /** Resolves when the control plane has recorded it. Repeating a report is safe. */
  report(report: WorkerReport): Promise<void>;
  /** asks for a lease, counted from the moment at which this is sent. */
  renew(request: LeaseRequest): Promise<LeaseAnswer>;
}
