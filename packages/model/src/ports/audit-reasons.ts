// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ErrorCode } from "../errors.ts";
import type { SandboxChange } from "./sandbox-store.ts";

/** Every way in which a sandbox's row changes. `begin`: it was not there before. */
export type SandboxChangeKind = "begin" | SandboxChange["kind"];

/**
 * Why a sandbox changed. Closed: whoever makes a change says one of these, and one that says none does not compile.
 */
export type ChangeReason =
  /** A caller asked for it over the API; `api/answered` says who. */
  | "asked"
  /** Its end had come. */
  | "end of life"
  /** It was lost, and its creator wanted it brought back by itself. */
  | "auto-recover"
  /** It was paused, a request came for it, and its creator wanted it woken by that. */
  | "auto-resume"
  /** What was begun is done: started, paused or ended as was asked before. */
  | "done"
  /** Whoever drove it is gone. */
  | "interrupted"
  | "the installation was stopped"
  | "its worker no longer has it"
  | "its worker's lease ran out"
  /** The step under way failed. */
  | `failed: ${ErrorCode}`
  | `abort of a pause: ${ErrorCode}`
  /** In the worker's words. */
  | `exited: ${string}`;

/** what an install found. */
export type InstallReason = "first" | "next-generation" | "next-attempt" | "reissued";

/** Why a worker ended an execution's processes. */
export type StopReason =
  | "retired"
  | "discarded"
  /** A later generation is installed. */
  | "superseded"
  /** Its start was given up, or failed. */
  | "start given up"
  /** It could not be let go on from its frozen state. */
  | "could not go on"
  /** It had exited, or its endpoint was refused: what was left of it. */
  | "gone"
  /** Found at a start of the daemon, and not to go on. */
  | "not wanted"
  | "the worker stops";

export type RetirementReason =
  /** Its sandbox was paused, killed or lost, or its start was given up; the sandbox's event says which. */
  | "its sandbox changed"
  /** The store knows no such sandbox. */
  | "unknown sandbox";

/** why a signing key changed. */
export type KeyChangeReason =
  | "first start"
  | "asked"
  /** The one that signs is old enough. */
  | "age"
  /** The one that signs is to be revoked. */
  | "successor of a revoked key"
  /** Every leased receiver holds it. */
  | "acknowledged"
  /** Nothing that it signed is valid any more. */
  | "overlap over"
  /** Its private half was lost before it signed anything. */
  | "lost";

/** Why the bridge did not begin an operation. */
export type BridgeRefusal =
  /** */
  | "no lease"
  /** It serves no such activation. */
  | "not adopted";
