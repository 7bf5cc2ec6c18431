// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest } from "../ids.ts";
import type { AuditEventName, AuditFields } from "./audit-events.ts";

/** What is signed of an audit log from time to time: its chain's state after `count` records. */
export interface AuditCheckpoint {
  /** Names the log: 32 hexadecimal characters. */
  readonly log: string;
  /** Who writes it: `control-plane`, or a worker's id. */
  readonly process: string;
  readonly count: number;
  /** SHA-256 of the record with number `count`, as it is in the file. */
  readonly head: Digest;
  readonly issuedAtSeconds: number;
}

/** Shows whose key signs: a verification bundle of the root's, or a certificate of the mesh's authority with a statement under it. */
export interface AuditWitness {
  readonly kind: "bundle" | "certificate";
  readonly proof: string;
}

/** Signs checkpoints with the key that counts now. May throw; the checkpoint is then tried again later. */
export type CheckpointSigner = (checkpoint: AuditCheckpoint) => {
  readonly token: string;
  readonly witness: AuditWitness;
};

/**
 * Where security-relevant events go, append-only. `record` returns at once and never throws: it is called before a
 * refusal is answered, and must not slow it down.
 */
export interface AuditSink {
  record<N extends AuditEventName>(name: N, fields: AuditFields[N]): void;
}
