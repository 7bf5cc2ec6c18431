// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ErrorCode } from "../errors.ts";
import type { HandOverFailure, HandOverProblem } from "../hand-over.ts";
import type { IdentityJson } from "../identity.ts";
import type {
  ActivationId,
  AdmissionId,
  CapabilityId,
  Digest,
  SandboxId,
  SnapshotId,
  TenantId,
  TenantKeyId,
  WorkerId,
} from "../ids.ts";
import type { SandboxState } from "../lifecycle.ts";
import type { SigningKeyState } from "../signing-key.ts";
import type { DenyReason, RefreshReason } from "../verdict.ts";
import type {
  BridgeRefusal,
  ChangeReason,
  InstallReason,
  KeyChangeReason,
  RetirementReason,
  SandboxChangeKind,
  StopReason,
} from "./audit-reasons.ts";
import type { SigningKeyChange } from "./signing-key-store.ts";

/**
 * Every event that the audit log can hold, with its fields. A line here and its fields' classes in
 * `auditFieldClasses` are the only way to add an event.
 */
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
   * it; `sandboxId` is what the path said, at most 64 characters, or the sandbox that was made.
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
  /** `reason`: what the record held before. */
  "execution/installed": { readonly identity: IdentityJson; readonly reason: InstallReason };
  "execution/paused": { readonly identity: IdentityJson; readonly cutStreams: number };
  "execution/pause-aborted": { readonly identity: IdentityJson };
  "execution/retired": {
    readonly identity: IdentityJson;
    readonly keptFrozen: boolean;
    readonly cutStreams: number;
  };
  "execution/exited": { readonly activationId: ActivationId; readonly reason: string };
  /** This worker has ended every process of it, and proved that. */
  "execution/stopped": { readonly activationId: ActivationId; readonly reason: StopReason };
  /** The worker did not do what it was told: the signature, the order or the state of things forbade it. */
  "command/refused": {
    readonly command: string;
    readonly sandboxId: SandboxId | null;
    readonly code: ErrorCode;
    readonly problem: string;
  };
  "execution/readopted": { readonly activationId: ActivationId; readonly sandboxId: SandboxId };
  "endpoint/refused": { readonly activationId: ActivationId; readonly problem: string };
  /** a bundle of verification keys was installed. */
  "keys/replaced": { readonly version: number };
  /** an older bundle, another of the same version, or one that the root has not signed. */
  "keys/refused": { readonly held: number; readonly code: ErrorCode; readonly problem: string };
  /** this worker's verified connection to its bridge. `known`: what the bridge served already. */
  "bridge/connected": { readonly known: number; readonly adopted: number };
  /** Its report was not of its form: it is not heard again before the next connection. */
  "bridge/misbehaved": { readonly code: ErrorCode; readonly problem: string };
  /** What follows is the bridge's own word. The same again within seconds is one event, `times` over. */
  "bridge/daemon-accepted": { readonly pid: number; readonly times: number };
  "bridge/daemon-refused": { readonly problem: string; readonly times: number };
  "bridge/endpoint-refused": {
    readonly activationId: ActivationId;
    readonly problem: string;
    readonly times: number;
  };
  /** an operation of the daemon's was not begun. */
  "bridge/operation-refused": {
    readonly activationId: ActivationId;
    readonly reason: BridgeRefusal;
    readonly times: number;
  };
  "bridge/adopted": {
    readonly activationId: ActivationId;
    readonly sandboxId: SandboxId;
    readonly times: number;
  };
  "bridge/rekeyed": { readonly from: ActivationId; readonly to: ActivationId; readonly times: number };
  "bridge/released": { readonly activationId: ActivationId; readonly times: number };
  /** the deadline that it was told has passed: nothing passes to or from a guest. */
  "bridge/fenced": { readonly times: number };
  "bridge/fence-lifted": { readonly times: number };
  /** fenced for so long that the streams which were held have ended. */
  "bridge/fence-given-up": { readonly cutStreams: number; readonly times: number };
  /** Events of further kinds that found no room; what they were is lost. */
  "bridge/suppressed": { readonly times: number };
  /** A change of a sandbox was written; `state` is the one after it. */
  "sandbox/changed": {
    readonly sandboxId: SandboxId;
    readonly change: SandboxChangeKind;
    readonly state: SandboxState;
    readonly generation: string;
    readonly revision: number;
    readonly reason: ChangeReason;
  };
  /** The store did not say whether this change was written. What counts shows with the sandbox's next change. */
  "sandbox/change-unknown": {
    readonly sandboxId: SandboxId;
    readonly change: SandboxChangeKind;
    readonly onRevision: number;
    readonly reason: ChangeReason;
    readonly code: ErrorCode;
  };
  /** It went on elsewhere from its newest snapshot, because that was asked for; what `lost` wrote since is gone. */
  "sandbox/recovered": { readonly sandboxId: SandboxId; readonly lost: string; readonly generation: string };
  "capability/issued": {
    readonly capabilityId: CapabilityId;
    readonly sandboxId: SandboxId;
    readonly generation: string;
    readonly tenantId: TenantId;
    readonly principal: string;
    readonly presenter: string;
    /** What it is for: its scopes, or its port and protocol. */
    readonly reason: string;
  };
  /** */
  "certificate/issued": {
    readonly identity: IdentityJson;
    readonly certificate: Digest;
    readonly previous: Digest | null;
    readonly restoredFrom: Digest | null;
    readonly reason: "create" | "resume" | "fork" | "template";
  };
  /** the control plane's word on where a sandbox's chain ends. */
  "chain-head/issued": {
    readonly sandboxId: SandboxId;
    readonly certificate: Digest;
    readonly manifest: Digest | null;
    readonly reason: "resume" | "export";
  };
  /** */
  "manifest/countersigned": {
    readonly sandboxId: SandboxId;
    readonly generation: string;
    readonly manifest: Digest;
    /** `snapshot`: it is kept apart, and its sandbox goes on. */
    readonly reason: "pause" | "snapshot";
  };
  /** a new sandbox begins with the snapshot of another one. */
  "origin/issued": {
    readonly sandboxId: SandboxId;
    readonly parent: Digest;
    readonly reason: "fork" | "template";
  };
  /** one worker may read this snapshot at the worker that made it. */
  "hand-over/issued": {
    readonly identity: IdentityJson;
    readonly manifest: Digest;
    readonly target: WorkerId;
    readonly reason: "move";
  };
  /** a worker has begun to give this snapshot's chunks to another: once for each link. */
  "hand-over/given": { readonly sandboxId: SandboxId; readonly manifest: Digest; readonly target: WorkerId };
  /** a worker gave nothing. `peer` is who asked, by its certificate. */
  "hand-over/refused": { readonly peer: WorkerId; readonly problem: HandOverProblem };
  /** How many chunks came from the worker that made the snapshot, how many from the object store, and why the first of those did. */
  "hand-over/received": {
    readonly sandboxId: SandboxId;
    readonly manifest: Digest;
    readonly source: WorkerId;
    readonly direct: number;
    readonly stored: number;
    readonly problem: HandOverFailure | "none";
  };
  /** each time that it is told; the receiver's own event says when it was carried out. */
  "retirement/issued": { readonly identity: IdentityJson; readonly reason: RetirementReason };
  /** `reason`: what the worker had before. */
  "lease/granted": {
    readonly workerId: WorkerId;
    readonly position: number;
    readonly termSeconds: number;
    readonly reason: "none before" | "renewed" | "the last had run out";
  };
  /** A data-path request showed no credential, or a wrong one. */
  "caller/refused": { readonly sandboxId: SandboxId; readonly problem: string };
  /** a step in a signing key's life; `bundle` is the newest version after it. */
  "signing-key/changed": {
    readonly kid: string;
    readonly change: SigningKeyChange["kind"];
    readonly state: SigningKeyState;
    readonly bundle: number;
    readonly reason: KeyChangeReason;
  };
  "tenant/created": { readonly tenantId: TenantId };
  "api-key/created": { readonly keyId: string; readonly tenantId: TenantId };
  /** `wasValid`: it was not revoked before. */
  "api-key/revoked": { readonly keyId: string; readonly wasValid: boolean };
  "api-key/refused": { readonly problem: "missing" | "unknown" };
  /** a component of this machine is on the private mesh with this certificate, in its own name, from now on. */
  "mesh/certified": {
    readonly name: string;
    readonly thumbprint: string;
    readonly reason: "start" | "another certificate";
  };
  /** A worker that was never seen before: its store was never connected. */
  "worker/enrolled": { readonly workerId: WorkerId; readonly reason: string };
  /** The control plane says that this store is not this worker's any more. */
  "worker/superseded": { readonly workerId: WorkerId };
  /** A worker said hello and both sides agree on what runs. */
  "worker/connected": {
    readonly workerId: WorkerId;
    readonly running: number;
    /** Executions and frozen processes that it was told to end. */
    readonly ended: number;
    /** Executions that it should have had. */
    readonly lost: number;
  };
  /** Its record set was not the one expected, and was repaired. */
  "worker/reconciled": { readonly workerId: WorkerId; readonly ended: number; readonly lost: number };
  "worker/disconnected": { readonly workerId: WorkerId };
  "worker/refused": { readonly workerId: WorkerId; readonly problem: string };
  /** a worker asked for a lease while it had not acknowledged all that it was told. */
  "lease/withheld": { readonly workerId: WorkerId };
  /** a worker has no lease any more: from here on it serves nothing, until it has one again. */
  "lease/ended": { readonly workerId: WorkerId };
  /** it has had none for so long that what was held has ended. */
  "lease/given-up": { readonly workerId: WorkerId; readonly cutStreams: number };
  /** `fenced`: whether it had been without one. */
  "lease/taken": { readonly workerId: WorkerId; readonly position: number; readonly fenced: boolean };
  /** An order to a worker did not arrive; it is tried again. */
  "order/undelivered": {
    readonly workerId: WorkerId;
    readonly sandboxId: SandboxId;
    readonly order: "retire" | "discard";
    readonly code: ErrorCode;
  };
  /** Work without a caller failed; it is tried again. */
  /** A snapshot was deleted, or a fork is done with it: nothing begins with it any more. */
  "snapshot/released": {
    readonly tenantId: TenantId;
    readonly snapshotId: SnapshotId;
    readonly sandboxId: SandboxId;
    readonly manifest: Digest;
  };
  /** What no snapshot needed was removed from the store, and what a pause came to need was put back; in chunks. */
  "snapshot/collected": {
    readonly tenantId: TenantId;
    readonly keyId: TenantKeyId;
    readonly removed: number;
    readonly removedBytes: number;
    readonly restored: number;
  };
  /** A new version of a tenant's key seals its snapshots from now on. */
  "tenant-key/rotated": { readonly tenantId: TenantId; readonly keyId: TenantKeyId };
  /** Every tenant's keys are under this key-encryption key, and those before it are gone. */
  "key-encryption/rotated": {
    readonly wrappingKey: string;
    readonly rewrapped: number;
    readonly kept: number;
  };
  "upkeep/failed": { readonly task: string; readonly sandboxId: SandboxId | null; readonly code: ErrorCode };
  /** Somebody dialled a private hop and was not let in: no certificate, another authority's, or a name that has no business there. */
  "mesh/refused": { readonly problem: string; readonly peer: string };
  /** We dialled `name` on a private hop, and who answered at this address could not prove to be it; nothing was sent. */
  "mesh/misdialled": { readonly name: string; readonly problem: string; readonly peer: string };
  /** A process began to write. `process` names it: `control-plane`, or the worker's id. */
  "audit/opened": { readonly log: string; readonly process: string };
  /** What shows whose key signs the checkpoints that follow. */
  "audit/witness": { readonly kind: string; readonly proof: string };
  /** A signed statement of the chain's state just before this record. */
  "audit/checkpoint": { readonly token: string };
  /** A crash left an incomplete record at the end; it was cut off. */
  "audit/recovered": { readonly tornBytes: number; readonly tornDigest: string };
  /** Events that came when no more could wait for the disk. */
  "audit/dropped": { readonly count: number };
  /** Whole segments were removed, as the retention says. */
  "audit/trimmed": { readonly throughSequence: number; readonly digest: string };
}

export type AuditEventName = keyof AuditFields;

export interface AuditEvent<N extends AuditEventName = AuditEventName> {
  readonly name: N;
  readonly fields: AuditFields[N];
}
