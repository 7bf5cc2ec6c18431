// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditEventName, AuditFields } from "./audit-events.ts";

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
  "bridge/connected": { known: "public", adopted: "public" },
  "bridge/misbehaved": { code: "public", problem: "public" },
  "bridge/daemon-accepted": { pid: "public", times: "public" },
  "bridge/daemon-refused": { problem: "public", times: "public" },
  "bridge/endpoint-refused": { activationId: "public", problem: "public", times: "public" },
  "bridge/operation-refused": { activationId: "public", reason: "public", times: "public" },
  "bridge/adopted": { activationId: "public", sandboxId: "public", times: "public" },
  "bridge/rekeyed": { from: "public", to: "public", times: "public" },
  "bridge/released": { activationId: "public", times: "public" },
  "bridge/fenced": { times: "public" },
  "bridge/fence-lifted": { times: "public" },
  "bridge/fence-given-up": { cutStreams: "public", times: "public" },
  "bridge/suppressed": { times: "public" },
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
  "hand-over/issued": { identity: "public", manifest: "public", target: "public", reason: "public" },
  "hand-over/given": { sandboxId: "public", manifest: "public", target: "public" },
  "hand-over/refused": { peer: "public", problem: "public" },
  "hand-over/received": {
    sandboxId: "public",
    manifest: "public",
    source: "public",
    direct: "public",
    stored: "public",
    problem: "public",
  },
  "origin/issued": { sandboxId: "public", parent: "public", reason: "public" },
  "snapshot/released": { tenantId: "public", snapshotId: "public", sandboxId: "public", manifest: "public" },
  "snapshot/collected": {
    tenantId: "public",
    keyId: "public",
    removed: "public",
    removedBytes: "public",
    restored: "public",
  },
  "tenant-key/rotated": { tenantId: "public", keyId: "public" },
  "key-encryption/rotated": { wrappingKey: "public", rewrapped: "public", kept: "public" },
  "upkeep/failed": { task: "public", sandboxId: "public", code: "public" },
  "mesh/refused": { problem: "public", peer: "sensitive" },
  "mesh/misdialled": { name: "public", problem: "public", peer: "sensitive" },
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
