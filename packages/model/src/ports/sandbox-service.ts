// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest, SandboxId, TenantId, WorkerId } from "../ids.ts";
import type { SandboxState } from "../lifecycle.ts";
import type { Secret } from "../secret.ts";
import type { MemoryKept } from "../snapshot.ts";

/** A caller of the control plane, as its API key proved it. */
export interface ApiCaller {
  readonly tenantId: TenantId;
  readonly keyId: string;
}

export interface CreateSandbox {
  readonly template: string;
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly onTimeout: "kill" | "pause";
  /** For `onTimeout: "pause"`: whether memory is to be kept where the substrate can. */
  readonly keepMemory: boolean;
  readonly autoResume: boolean;
  /** SPACE's own: when its worker is lost, resume elsewhere from the newest snapshot, without being asked. */
  readonly autoRecover: boolean;
  /** SPACE's own: place it on this worker. */
  readonly workerId?: WorkerId;
  readonly idempotencyKey?: string;
}

/** One sandbox as its owner sees it. */
export interface SandboxView {
  readonly sandboxId: SandboxId;
  readonly template: string;
  readonly alias: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly state: SandboxState;
  readonly startedAtMs: number;
  readonly endAtMs: number;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly diskMb: number;
  readonly onTimeout: "kill" | "pause";
  readonly autoResume: boolean;
  readonly generation: bigint;
  readonly workerId: WorkerId | null;
  readonly autoRecover: boolean;
  /** What the newest snapshot kept; null without one. */
  readonly snapshot: {
    readonly digest: Digest;
    readonly memory: MemoryKept;
    readonly sizeBytes: number;
  } | null;
  /** Why it was lost; null unless it is. */
  readonly lostReason: string | null;
  /**
   * The generation that was lost and whose last state this run lacks: it went on from the newest snapshot before. Null
   * where nothing is missing, and again once the run has been paused.
   */
  readonly recoveredFrom: bigint | null;
}

/** With what is shown only to who created or connected. */
export interface ConnectedSandbox extends SandboxView {
  readonly accessToken: Secret<string>;
  readonly trafficAccessToken: Secret<string> | null;
  /** `true` when this call brought it back from a pause. */
  readonly resumed: boolean;
}

export interface ListSandboxes {
  readonly states: readonly ("running" | "paused" | "lost")[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly template?: string;
  readonly startedAfterMs?: number;
  readonly order: "asc" | "desc";
  readonly limit: number;
  readonly after?: { readonly startedAtMs: number; readonly sandboxId: SandboxId };
}

export interface ConnectSandbox {
  readonly timeoutMs: number;
  /** False: cold boot from the files alone. */
  readonly memory: boolean;
  /**
   * SPACE's own: goes on from this snapshot although the sandbox is lost. It must be the newest: what was written since
   * is gone, and whoever names it says so.
   */
  readonly snapshot?: Digest;
  /** SPACE's own: resume on this worker. */
  readonly workerId?: WorkerId;
}

export interface MoveSandbox {
  /** Where to; absent: the least full of the others. The worker that it is on already: nothing is done. */
  readonly workerId?: WorkerId;
}

export interface MovedSandbox extends SandboxView {
  /** False: only the files went along, because the substrate keeps memory on its own worker alone. */
  readonly memoryMoved: boolean;
}

/** `POST /sandboxes/{id}/move`, with `{ "workerID"?: string }`: 204, and the header `space-memory-moved: true` or `false`. */
export interface SandboxMover {
  /**
   * A running sandbox goes on elsewhere as its next generation, with its end unchanged. Throws `sandbox/not-found`;
   * `sandbox/state` when it does not run; `worker/none-free` and `worker/unreachable` before anything changes; with the
   * sandbox running on where it was, `snapshot/unsavable` and whatever else a pause throws; with the sandbox paused and
   * intact, what a resume throws.
   */
  move(caller: ApiCaller, sandboxId: SandboxId, request: MoveSandbox): Promise<MovedSandbox>;
}

/**
 * What callers may do with sandboxes. All throw `sandbox/not-found` for an unknown sandbox and for another tenant's alike,
 * `sandbox/state` where the state forbids it, and failures of kind `unavailable` or `exhausted` that may be tried again.
 */
export interface SandboxService extends SandboxMover {
  /** Throws `key/missing` or `key/unknown`. */
  authenticate(apiKey: Secret<string> | undefined): Promise<ApiCaller>;
  create(caller: ApiCaller, request: CreateSandbox): Promise<ConnectedSandbox>;
  /**
   * Running: extends the end, never shortens it. Paused: resumes as the next generation. Lost: `sandbox/lost`, unless the
   * request names its newest snapshot (statement 5: an older state is never silently taken for the newest).
   */
  connect(caller: ApiCaller, sandboxId: SandboxId, request: ConnectSandbox): Promise<ConnectedSandbox>;
  /** As {@link connect}, but `sandbox/state` when it runs already. */
  resume(caller: ApiCaller, sandboxId: SandboxId, request: ConnectSandbox): Promise<ConnectedSandbox>;
  get(caller: ApiCaller, sandboxId: SandboxId): Promise<SandboxView>;
  list(caller: ApiCaller, request: ListSandboxes): Promise<readonly SandboxView[]>;
  pause(caller: ApiCaller, sandboxId: SandboxId, keepMemory: boolean): Promise<SandboxView>;
  /** Sets the end to now + timeout; may shorten. */
  setTimeout(caller: ApiCaller, sandboxId: SandboxId, timeoutMs: number): Promise<void>;
  kill(caller: ApiCaller, sandboxId: SandboxId): Promise<void>;
}
