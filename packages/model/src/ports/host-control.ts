// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ActivationId, SandboxId } from "../ids.ts";
import type { Secret } from "../secret.ts";
import type { BridgeReport, SeenReport } from "./bridge-events.ts";

export interface AdoptRequest {
  readonly activationId: ActivationId;
  readonly sandboxId: SandboxId;
  readonly template: string;
  readonly socketPath: string;
  readonly activationSecret: Secret<Uint8Array>;
  /** The process that must own the listening socket. */
  readonly guest: { readonly pid: number; readonly startTime: string };
  /** Nothing has run in this sandbox before, so that all that ever ran is known from here on. */
  readonly isFirst: boolean;
  /** Sandbox-wide variables of the user's processes. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Most of what a bridge knows of one guest that goes with its memory: what its streams have sent last, above all. */
export const carriedLimitBytes: number = 64 * 1024 * 1024;
/** In one piece. */
export const carriedPieceBytes: number = 512 * 1024;

/** A part of what a bridge knows of a guest. Its form is the bridge's own. */
export interface CarriedPiece {
  readonly offset: number;
  readonly totalBytes: number;
  /** At most {@link carriedPieceBytes}; fewer only at the end. */
  readonly bytes: Uint8Array;
}

export interface RekeyRequest {
  readonly from: ActivationId;
  readonly to: ActivationId;
  readonly activationSecret: Secret<Uint8Array>;
}

/**
 * The worker daemon's commands to `spaced-host`, the bridge that outlives it. Each is safe to repeat. The bridge serves
 * an activation only between `adopt` and `release`, and only after it has verified the guest's socket itself.
 */
export interface HostControl {
  /** Verifies the endpoint and begins to serve. Throws `endpoint/mismatch` or `endpoint/unverifiable`. */
  adopt(request: AdoptRequest): Promise<void>;
  /** A frozen execution goes on as another activation: new id, new secret, same processes. Old connections end. */
  rekey(request: RekeyRequest): Promise<void>;
  /**
   * Waits up to `limitMs` for short operations to end, then flushes the guest's files to the host. True when none was cut
   * short. `letGo`: then also has the guest let go of its socket and every connection, so that it can be saved; the bridge
   * serves it again when it is adopted anew, and its processes with it.
   */
  quiesce(activationId: ActivationId, limitMs: number, letGo: boolean): Promise<boolean>;
  /**
   * from this offset on, what the bridge knows of a guest that it has let go of, so that another bridge can go on with
   * its processes and their streams. Throws `endpoint/unverifiable` for any other guest, and `input/too-large`.
   */
  carried(activationId: ActivationId, offset: number): Promise<CarriedPiece>;
  /** What another bridge knew of the guest that is adopted next under this name, piece by piece, in order. Throws `input/invalid`. */
  carry(activationId: ActivationId, piece: CarriedPiece): Promise<void>;
  /** Ends every stream and forgets the activation. Unknown ones are a success. */
  release(activationId: ActivationId): Promise<void>;
  /** from this moment of the host's boot-time clock on nothing passes to or from a guest, until a later one is said. */
  holdUntil(deadlineBootMs: number): Promise<void>;
  list(): Promise<readonly ActivationId[]>;
  /**
   * Resolves with the next report for the audit log as soon as there is one, a little later where one was taken just now.
   * `seen` acknowledges; what is not acknowledged is told again, also to another daemon. The latest call gets it.
   */
  takeReport(seen: SeenReport | null): Promise<BridgeReport>;
}
