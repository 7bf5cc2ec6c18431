// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SubstrateName } from "../identity.ts";
import type { ActivationId, SandboxId } from "../ids.ts";
import type { Secret } from "../secret.ts";

/** What a driver can do on this host, as data: callers are told, never surprised. */
export interface SubstrateAbilities {
  readonly name: SubstrateName;
  /** A frozen execution keeps its memory while it stays on this worker. */
  readonly freeze: boolean;
  /** Memory can be written to a snapshot and restored elsewhere. */
  readonly memorySnapshots: boolean;
  readonly terminals: boolean;
  /** `native` (the compiled launcher) or `portable` (no C compiler on the host). */
  readonly launcher: string;
}

export interface ExecutionLimits {
  readonly memoryBytes: number;
  /** Whole and part CPUs, e.g. 2 or 0.5. */
  readonly cpus: number;
  readonly processes: number;
  readonly diskBytes: number;
}

export interface StartRequest {
  readonly sandboxId: SandboxId;
  readonly activationId: ActivationId;
  /** 32 random bytes with which the guest proves that it is this activation. */
  readonly activationSecret: Secret<Uint8Array>;
  readonly hostname: string;
  readonly limits: ExecutionLimits;
  /** The filesystem to begin with: an archive stream as {@link Substrate.snapshot} made it; absent: a fresh one. */
  readonly filesystem?: AsyncIterable<Uint8Array>;
}

/** Process identity that survives pid reuse: see endpoint verification. */
export interface ProcessEvidence {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat, as text. */
  readonly startTime: string;
  readonly executable: { readonly device: string; readonly inode: string };
  readonly uid: number;
}

/** What the worker records at activation about the endpoint behind an execution. */
export interface EndpointEvidence {
  readonly hostBootId: string;
  readonly guest: ProcessEvidence;
  readonly socketPath: string;
  readonly socketInode: string;
  readonly cgroup: string;
}

export interface RunningExecution {
  readonly activationId: ActivationId;
  readonly evidence: EndpointEvidence;
}

/** How an execution's runtime process ended by itself. */
export interface ExecutionExit {
  readonly activationId: ActivationId;
  readonly reason: string;
}

/**
 * A driver of isolated executions. Calls for different activations may run concurrently; calls for one are made one
 * after the other. Whatever fails, a driver leaves nothing behind for the activation (`stop` is implied by a failed
 * `start`). The conformance suite in `testing` is the whole of this contract.
 */
export interface Substrate {
  readonly abilities: SubstrateAbilities;
  /** Returns when the guest's agent listens. Throws `substrate/failed`, `snapshot/refused` or `host/unfit`. */
  start(request: StartRequest): Promise<RunningExecution>;
  /**
   * Stops every process of the execution without losing memory; false when it is gone. `snapshot`: so that `snapshot` can
   * follow. A driver with `memorySnapshots` then needs the guest to have let go of all its connections: with proof of the
   * contrary it throws `substrate/failed`, step "quiesce", and the execution goes on.
   */
  freeze(activationId: ActivationId, purpose?: "hold" | "snapshot"): Promise<boolean>;
  /** Its processes go on, and its agent listens where it did. False when it is gone. */
  thaw(activationId: ActivationId): Promise<boolean>;
  /**
   * The filesystem layer of a frozen or stopped execution, with its memory where the driver has `memorySnapshots`, as an
   * archive that any worker of the same driver can start from. Throws `snapshot/fatal` when the attempt has ended the
   * execution: nothing of its last state is left.
   */
  snapshot(activationId: ActivationId): AsyncIterable<Uint8Array>;
  /** Kills every process, proves that none is left, releases all resources. Unknown activations are a success. */
  stop(activationId: ActivationId): Promise<void>;
  /** What runs now, from the kernel's view; used when a worker daemon starts again. */
  list(): Promise<readonly RunningExecution[]>;
  /** Removes what belongs to no activation in `keep` (a crash's leftovers). Returns how many it removed. */
  sweep(keep: ReadonlySet<ActivationId>): Promise<number>;
  /**
   * everything that it runs is frozen when this moment of the host's boot-time clock passes, even if this process
   * stands still then; what was frozen only for that goes on when a later one is said. Rejects where it may not have
   * been heard: then the earlier one counts.
   */
  holdUntil(deadlineBootMs: number): Promise<void>;
  /** Reports executions whose runtime ended by itself. */
  onExit(listener: (exit: ExecutionExit) => void): void;
  /** Ends the driver. `stopAll`: also everything it runs; otherwise executions go on for the next daemon to adopt. */
  close(how: "stopAll" | "leave"): Promise<void>;
}
