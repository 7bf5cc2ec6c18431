// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ErrorCode } from "../errors.ts";
import type { IdentityJson } from "../identity.ts";
import type {
  ActivationId,
  AdmissionId,
  CapabilityId,
  Digest,
  SandboxId,
  TenantId,
  WorkerId,
} from "../ids.ts";
import type { SandboxState } from "../lifecycle.ts";
import type { DenyReason, RefreshReason } from "../verdict.ts";

/** Every event that the audit stream can hold, with its fields. Adding a line here is the only way to add an event. Each field is public. */
export interface AuditFields {
  "admission/denied": {
    readonly admission: AdmissionId;
    readonly sandboxId: SandboxId;
    readonly reason: DenyReason;
    readonly presenter: string;
  };
  "admission/refreshed": {
    readonly admission: AdmissionId;
    readonly sandboxId: SandboxId;
    readonly reason: RefreshReason;
    readonly presenter: string;
  };
  "gateway/misbehaved": { readonly presenter: string; readonly problem: string };
  /** The gateway repaired a caller's entry after a recognised `refresh-route`; `found` is null when there was none. */
  "route/repaired": {
    readonly sandboxId: SandboxId;
    readonly rejected: Digest;
    readonly found: Digest | null;
  };
  /** A worker's `deny` reached the gateway; the reason is in the worker's own event of the same admission. */
  "route/denied": { readonly admission: AdmissionId; readonly sandboxId: SandboxId };
  /** A worker's answer was neither an admission nor a verdict of the request it answered. */
  "worker/misbehaved": {
    readonly admission: AdmissionId;
    readonly workerId: WorkerId;
    readonly problem: string;
  };
  /**
   * A request to the REST surface was answered (status 0: its client had gone). Nobody is named before the key has proved
   * it; `sandboxId` is what the path said, at most 64 characters.
   */
  "api/answered": {
    readonly operation: string;
    readonly tenantId: TenantId | null;
    readonly keyId: string | null;
    readonly sandboxId: string;
    readonly status: number;
    readonly code: ErrorCode | null;
  };
  /** A stream was closed because its caller is no longer authorised. */
  "caller/revoked": { readonly sandboxId: SandboxId };
  "execution/activated": { readonly identity: IdentityJson; readonly memory: boolean };
  "execution/installed": { readonly identity: IdentityJson };
  "execution/paused": { readonly identity: IdentityJson; readonly cutStreams: number };
  "execution/pause-aborted": { readonly identity: IdentityJson };
  "execution/retired": {
    readonly identity: IdentityJson;
    readonly keptFrozen: boolean;
    readonly cutStreams: number;
  };
  "execution/exited": { readonly activationId: ActivationId; readonly reason: string };
  "execution/readopted": { readonly activationId: ActivationId; readonly sandboxId: SandboxId };
  "endpoint/refused": { readonly activationId: ActivationId; readonly problem: string };
  "keys/replaced": { readonly version: number };
  "bridge/daemon-accepted": { readonly pid: number };
  "bridge/daemon-refused": { readonly problem: string };
  "bridge/adopted": { readonly activationId: ActivationId; readonly sandboxId: SandboxId };
  "bridge/rekeyed": { readonly from: ActivationId; readonly to: ActivationId };
  "bridge/released": { readonly activationId: ActivationId };
  "bridge/orphaned": { readonly limitMs: number };
  /** A sandbox entered a state; `reason` only where it failed or was lost. */
  "sandbox/changed": {
    readonly sandboxId: SandboxId;
    readonly state: SandboxState;
    readonly generation: string;
    readonly reason: string | null;
  };
  "capability/issued": {
    readonly capabilityId: CapabilityId;
    readonly sandboxId: SandboxId;
    readonly generation: string;
    readonly principal: string;
    readonly presenter: string;
  };
  /** A data-path request showed no credential, or a wrong one. */
  "caller/refused": { readonly sandboxId: SandboxId; readonly problem: string };
  "api-key/created": { readonly keyId: string; readonly tenantId: TenantId };
  "api-key/refused": { readonly problem: "missing" | "unknown" };
  /** A worker said hello and both sides agree on what runs. */
  "worker/connected": {
    readonly workerId: WorkerId;
    readonly running: number;
    /** Executions and frozen processes that it was told to end. */
    readonly ended: number;
    /** Executions that it should have had. */
    readonly lost: number;
  };
  "worker/disconnected": { readonly workerId: WorkerId };
  "worker/refused": { readonly workerId: WorkerId; readonly problem: string };
  /** An order to a worker did not arrive; it is tried again. */
  "order/undelivered": {
    readonly workerId: WorkerId;
    readonly sandboxId: SandboxId;
    readonly order: "retire" | "discard";
    readonly code: ErrorCode;
  };
  /** Work without a caller failed; it is tried again. */
  "upkeep/failed": { readonly task: string; readonly sandboxId: SandboxId | null; readonly code: ErrorCode };
}

export type AuditEventName = keyof AuditFields;

export interface AuditEvent<N extends AuditEventName = AuditEventName> {
  readonly name: N;
  readonly fields: AuditFields[N];
}

/**
 * Where security-relevant events go, append-only. `record` returns at once and never throws: it is called before a
 * refusal is answered, and must not slow it down.
 */
export interface AuditSink {
  record<N extends AuditEventName>(name: N, fields: AuditFields[N]): void;
}
