// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ActivationId, SandboxId, SandboxRecord } from "@space/model";
import type { SimProcess } from "./sim-machine.ts";
import type { ReadCapability, Statement } from "./statements.ts";

/** One operation of a simulated caller. */
export interface TrueOperation {
  readonly number: number;
  readonly sandboxId: SandboxId;
  /** Names caller, sandbox and the access that this path needs: whose authorisation it rests on. */
  readonly authorityFor: (path: string) => string;
  /** Whether its caller has any right to it. */
  readonly isEntitled: boolean;
  /** When the credential ends by itself. */
  readonly credentialEndsMs: number;
  readonly isEffect: boolean;
  /** A presentation that no worker may let through: what is broken when one does. */
  readonly forbidden?: { readonly statement: Statement; readonly what: string };
  /** Verdicts that its gateway got for it. */
  denials?: number;
  presented: Presentation[];
  /** Processes that it reached. */
  readonly reached: number[];
}

/** One presentation of an operation's capability at a worker. */
export interface Presentation {
  readonly operation: TrueOperation;
  readonly capability: ReadCapability;
  readonly presenter: string;
  readonly sentMs: number;
  readonly issuedMs: number;
  /** When its capability was asked for. */
  readonly askedMs: number;
  readonly host: string;
  readonly path: string;
  /** Gateway and authority: on whose look-ups it rests. */
  readonly key: string;
  /** the epoch of the record when it arrived; set then. */
  epoch: bigint | undefined;
  /** Whether the worker passed it on to its bridge. */
  isForwarded: boolean;
}

/** One generation, as it was claimed. */
export interface TrueExecution {
  readonly sandboxId: SandboxId;
  readonly generation: string;
  readonly workerId: string;
  readonly podUid: string | undefined;
  /** Whether its certificate was ever published, and of which attempt. */
  isPublished: boolean;
  attempt: number;
}

export interface TrueSandbox {
  readonly running: Set<SimProcess>;
  /** Files of the newest committed snapshot. */
  committed: string | undefined;
  readonly snapshots: Map<ActivationId, string>;
  /** Writes that were acknowledged to a caller and may not be lost. */
  acknowledged: Set<number>;
  readonly processes: SimProcess[];
  /** Processes whose execution was reported as lost, with what it wrote since the snapshot. */
  readonly lost: Set<number>;
  state: SandboxRecord["state"];
  /** Since when its row has said that it runs; undefined: it does not. */
  runningSinceMs: number | undefined;
  /** The activation that was claimed last. */
  current: ActivationId | undefined;
  /** The newest generation that callers were ever sent to. */
  published: bigint;
}

export interface KnownCapability {
  readonly token: string;
  /** Read when it is first asked for. */
  read: ReadCapability | undefined;
  readonly issuedMs: number;
  /** When the look-up that brought it began. */
  readonly askedMs: number;
}
