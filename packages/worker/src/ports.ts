// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import type {
  ActivationStore,
  AuditSink,
  BootClock,
  IdentityVerdict,
  NeededAccess,
  Random,
  RuntimeRecord,
  RuntimeRecordStore,
  SandboxId,
  SnapshotStore,
  Substrate,
  SuccessionStore,
  WorkerId,
} from "@space/model";

/**
 * Opens connections to this worker's bridge. Resolves only with a socket whose other end has been verified (peer, start
 * time, executable: R-19), each time anew. Throws `endpoint/mismatch` or `endpoint/unverifiable`.
 */
export interface HostConnector {
  connect(signal: AbortSignal): Promise<Duplex>;
}

/** Opens connections to other workers' node-api. */
export interface PeerDialler {
  /**
   * Resolves only when the other end has proved to be this worker, and this one has shown who it is. Throws
   * `endpoint/mismatch` when another answers there, `link/closed` for everything else, the signal included.
   */
  dial(
    peer: { readonly workerId: WorkerId; readonly host: string; readonly port: number },
    signal: AbortSignal,
  ): Promise<Duplex>;
}

/** One request before the comparator, as the worker knows it. */
export interface AdmissionRequest {
  readonly capability: string;
  /** the target, named apart from the capability. */
  readonly target: SandboxId;
  readonly record: RuntimeRecord | undefined;
  /** thumbprint of the certificate with which the gateway's link was opened. */
  readonly presenter: string;
  readonly needed: NeededAccess;
}

/** Decides one request from local state only, at once, without throwing. */
export interface AdmissionCheck {
  check(request: AdmissionRequest): IdentityVerdict;
}

export type WorkerStore = RuntimeRecordStore & ActivationStore & SuccessionStore;

export interface WorkerPorts {
  /** Owned by the caller: the worker does not close it. */
  readonly records: WorkerStore;
  readonly substrate: Substrate;
  /** Sealed snapshots: their contents, their manifests, the objects of their chains. Opened with the key that a command brings. */
  readonly snapshots: SnapshotStore;
  readonly host: HostConnector;
  /** Absent: moved snapshots come from the store alone. */
  readonly peers?: PeerDialler;
  readonly clock: BootClock;
  readonly random: Random;
  readonly audit: AuditSink;
}
