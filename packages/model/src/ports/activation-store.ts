// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ExecutionIdentity } from "../identity.ts";
import type { ActivationId, Digest, SandboxId } from "../ids.ts";
import type { Secret } from "../secret.ts";
import type { EndpointEvidence } from "./substrate.ts";

/**
 * What a runtime process does now. `pausing`: not admitting, perhaps frozen already. `frozen`: flushed and frozen.
 * `snapshotted`: frozen, and its snapshot is whole. `kept`: retired, frozen, waiting to go on as another activation.
 */
export type ActivationPhase = "running" | "pausing" | "frozen" | "snapshotted" | "kept";

/** What a worker must not forget of a runtime process that it started. Private to the worker. */
export interface ActivationRecord {
  /** The identity it was activated for. `identity.activation.id` is the key. */
  readonly identity: ExecutionIdentity;
  readonly phase: ActivationPhase;
  /** Under which id the substrate started the process; differs after a thaw as another activation. */
  readonly startedAs: ActivationId;
  /** the execution's private key, PKCS #8 PEM. */
  readonly privateKey: Secret<string>;
  readonly publicKey: string;
  readonly activationSecret: Secret<Uint8Array>;
  readonly template: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly evidence: EndpointEvidence;
  /** Manifest that it was restored from; null for a cold start. */
  readonly restoredFrom: Digest | null;
  /** Whether the processes of that snapshot went on. */
  readonly memory: boolean;
  /** The signed manifest of phases `snapshotted` and `kept`; null before. */
  readonly manifest: string | null;
}

/**
 * The worker's durable memory of its runtime processes. A change survives the end of the daemon from the moment that
 * it returns, not the end of the host, with which the processes end too; reads are from memory. One writer process.
 */
export interface ActivationStore {
  readActivation(id: ActivationId): ActivationRecord | undefined;
  allActivations(): readonly ActivationRecord[];
  /** Those of one sandbox, however many others there are. */
  activationsOf(sandboxId: SandboxId): readonly ActivationRecord[];
  readonly activationCount: number;
  writeActivation(activation: ActivationRecord): void;
  /** In one step: `from` is forgotten and its process goes on as `next`. */
  continueActivation(from: ActivationId, next: ActivationRecord): void;
  removeActivation(id: ActivationId): void;
}
