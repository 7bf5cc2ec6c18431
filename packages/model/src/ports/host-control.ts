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
