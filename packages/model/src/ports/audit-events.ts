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
import type { SigningKeyState } from "../signing-key.ts";
import type { DenyReason, RefreshReason } from "../verdict.ts";
import type {
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
 * {@link auditFieldClasses} are the only way to add an event.
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
  "bridge/daemon-accepted": { readonly pid: number };
  "bridge/daemon-refused": { readonly problem: string };
  "bridge/adopted": { readonly activationId: ActivationId; readonly sandboxId: SandboxId };
  "bridge/rekeyed": { readonly from: ActivationId; readonly to: ActivationId };
  "bridge/released": { readonly activationId: ActivationId };
  "bridge/orphaned": { readonly limitMs: number };
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
    readonly reason: "create" | "resume";
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
    readonly reason: "pause";
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
  "upkeep/failed": { readonly task: string; readonly sandboxId: SandboxId | null; readonly code: ErrorCode };
  /** Somebody dialled a private hop and was not let in: no certificate, another authority's, or a name that has no business there. */
  "mesh/refused": { readonly problem: string; readonly peer: string };
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

/**
 * `public`: may be shown to whoever operates SPACE. `sensitive`: names a person's credential, an address, or text that an
 * outsider chose; written, and shown on request only. `secret`: never written.
 */
export type FieldClass = "public" | "sensitive" | "secret";

export type AuditFieldClasses = {
  readonly [N in AuditEventName]: { readonly [F in keyof AuditFields[N]]: FieldClass };
};

/** The class of every field. A field without one does not compile, and is not written at run time. */
export const auditFieldClasses: AuditFieldClasses = {
  "admission/denied": { admission: "public", sandboxId: "sensitive", reason: "public", presenter: "public" },
  "admission/refreshed": {
    admission: "public",
    sandboxId: "sensitive",
    reason: "public",
    presenter: "public",
  },
  "gateway/misbehaved": { presenter: "public", problem: "public" },
  "route/repaired": { sandboxId: "public", rejected: "public", found: "public" },
  "route/denied": { admission: "public", sandboxId: "public" },
  "worker/misbehaved": { admission: "public", workerId: "public", problem: "public" },
  "api/answered": {
    operation: "public",
    tenantId: "public",
    keyId: "sensitive",
    sandboxId: "sensitive",
    status: "public",
    code: "public",
  },
  "caller/revoked": { sandboxId: "public" },
  "execution/activated": { identity: "public", memory: "public" },
  "execution/installed": { identity: "public", reason: "public" },
  "execution/paused": { identity: "public", cutStreams: "public" },
  "execution/pause-aborted": { identity: "public" },
  "execution/retired": { identity: "public", keptFrozen: "public", cutStreams: "public" },
  "execution/exited": { activationId: "public", reason: "public" },
  "execution/stopped": { activationId: "public", reason: "public" },
  "command/refused": { command: "public", sandboxId: "public", code: "public", problem: "public" },
  "execution/readopted": { activationId: "public", sandboxId: "public" },
  "endpoint/refused": { activationId: "public", problem: "public" },
  "keys/replaced": { version: "public" },
  "keys/refused": { held: "public", code: "public", problem: "public" },
  "bridge/daemon-accepted": { pid: "public" },
  "bridge/daemon-refused": { problem: "public" },
  "bridge/adopted": { activationId: "public", sandboxId: "public" },
  "bridge/rekeyed": { from: "public", to: "public" },
  "bridge/released": { activationId: "public" },
  "bridge/orphaned": { limitMs: "public" },
  "sandbox/changed": {
    sandboxId: "public",
    change: "public",
    state: "public",
    generation: "public",
    revision: "public",
    reason: "public",
  },
  "sandbox/change-unknown": {
    sandboxId: "public",
    change: "public",
    onRevision: "public",
    reason: "public",
    code: "public",
  },
  "sandbox/recovered": { sandboxId: "public", lost: "public", generation: "public" },
  "capability/issued": {
    capabilityId: "public",
    sandboxId: "public",
    generation: "public",
    tenantId: "public",
    principal: "sensitive",
    presenter: "public",
    reason: "public",
  },
  "certificate/issued": {
    identity: "public",
    certificate: "public",
    previous: "public",
    restoredFrom: "public",
    reason: "public",
  },
  "chain-head/issued": { sandboxId: "public", certificate: "public", manifest: "public", reason: "public" },
  "manifest/countersigned": {
    sandboxId: "public",
    generation: "public",
    manifest: "public",
    reason: "public",
  },
  "retirement/issued": { identity: "public", reason: "public" },
  "lease/granted": { workerId: "public", position: "public", termSeconds: "public", reason: "public" },
  "caller/refused": { sandboxId: "sensitive", problem: "public" },
  "signing-key/changed": {
    kid: "public",
    change: "public",
    state: "public",
    bundle: "public",
    reason: "public",
  },
  "tenant/created": { tenantId: "public" },
  "api-key/created": { keyId: "sensitive", tenantId: "public" },
  "api-key/revoked": { keyId: "sensitive", wasValid: "public" },
  "api-key/refused": { problem: "public" },
  "mesh/certified": { name: "public", thumbprint: "public", reason: "public" },
  "worker/enrolled": { workerId: "public", reason: "public" },
  "worker/superseded": { workerId: "public" },
  "worker/connected": { workerId: "public", running: "public", ended: "public", lost: "public" },
  "worker/reconciled": { workerId: "public", ended: "public", lost: "public" },
  "worker/disconnected": { workerId: "public" },
  "lease/withheld": { workerId: "public" },
  "lease/ended": { workerId: "public" },
  "lease/given-up": { workerId: "public", cutStreams: "public" },
  "lease/taken": { workerId: "public", position: "public", fenced: "public" },
  "worker/refused": { workerId: "public", problem: "public" },
  "order/undelivered": { workerId: "public", sandboxId: "public", order: "public", code: "public" },
  "upkeep/failed": { task: "public", sandboxId: "public", code: "public" },
  "mesh/refused": { problem: "public", peer: "sensitive" },
  "audit/opened": { log: "public", process: "public" },
  "audit/witness": { kind: "public", proof: "public" },
  "audit/checkpoint": { token: "public" },
  "audit/recovered": { tornBytes: "public", tornDigest: "public" },
  "audit/dropped": { count: "public" },
  "audit/trimmed": { throughSequence: "public", digest: "public" },
};

/**
 * The class of a field by the names alone, for what was read or built at run time: `secret` unless the table says
 * otherwise.
 */
export function auditFieldClass(event: string, field: string): FieldClass {
  if (!Object.hasOwn(auditFieldClasses, event)) return "secret";
  const classes: Readonly<Record<string, FieldClass>> = auditFieldClasses[event as AuditEventName]; // cast: it has the line
  return Object.hasOwn(classes, field) ? (classes[field] ?? "secret") : "secret";
}

/** The fields of an event as they may be written: whatever is secret, or in no table, is replaced by its mark. */
export function redactAuditFields(event: string, fields: object): Readonly<Record<string, unknown>> {
  const written: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(fields)) {
    written[field] = auditFieldClass(event, field) === "secret" ? "[secret]" : value;
  }
  return written;
}
