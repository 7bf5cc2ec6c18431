// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SQLOutputValue } from "node:sqlite";
import {
  type ActivationPhase,
  type ActivationRecord,
  evidenceToText,
  identityToJson,
  parseActivationId,
  parseDigest,
  parseEvidence,
  parseIdentity,
  type RuntimeRecord,
  Secret,
  SpaceError,
} from "@space/model";

/** One row as node:sqlite gives it, integers as bigints. */
export type Row = Record<string, SQLOutputValue>;

const phases: readonly ActivationPhase[] = ["running", "pausing", "frozen", "snapshotted", "kept"];

export function recordToRow(record: RuntimeRecord): Record<string, string | bigint> {
  const { identity } = record;
  return {
    sandbox_id: identity.sandboxId,
    generation: identity.generation,
    attempt: BigInt(identity.activation.attempt),
    activation_id: identity.activation.id,
    identity: JSON.stringify(identityToJson(identity)),
    state: record.state,
    certificate: record.certificate,
    certificate_digest: record.certificateDigest,
    epoch: record.epoch,
    host_boot_id: record.hostBootId,
    evidence: record.evidence,
  };
}

/** Throws `store/failed` for a row that this code did not write. */
export function rowToRecord(row: Row): RuntimeRecord {
  const { state, epoch } = row;
  if (typeof epoch !== "bigint" || (state !== "installed" && state !== "retired")) throw unreadable();
  return Object.freeze({
    identity: parseIdentity(JSON.parse(text(row["identity"]))),
    state,
    certificate: text(row["certificate"]),
    certificateDigest: parseDigest(row["certificate_digest"]),
    epoch,
    hostBootId: text(row["host_boot_id"]),
    evidence: text(row["evidence"]),
  });
}

export function activationToRow(
  activation: ActivationRecord,
): Record<string, string | bigint | Uint8Array | null> {
  const { identity } = activation;
  return {
    activation_id: identity.activation.id,
    sandbox_id: identity.sandboxId,
    generation: identity.generation,
    identity: JSON.stringify(identityToJson(identity)),
    phase: activation.phase,
    started_as: activation.startedAs,
    private_key: activation.privateKey.reveal(),
    public_key: activation.publicKey,
    activation_secret: activation.activationSecret.reveal(),
    template: activation.template,
    variables: JSON.stringify(activation.variables),
    evidence: evidenceToText(activation.evidence),
    restored_from: activation.restoredFrom,
    memory: activation.memory ? 1n : 0n,
    manifest: activation.manifest,
  };
}

/** Throws `store/failed` for a row that this code did not write. */
export function rowToActivation(row: Row): ActivationRecord {
  const phase = phases.find((name) => name === row["phase"]);
  const secret = row["activation_secret"];
  if (phase === undefined || !(secret instanceof Uint8Array)) throw unreadable();
  return Object.freeze({
    identity: parseIdentity(JSON.parse(text(row["identity"]))),
    phase,
    startedAs: parseActivationId(row["started_as"]),
    privateKey: new Secret(text(row["private_key"])),
    publicKey: text(row["public_key"]),
    activationSecret: new Secret(secret),
    template: text(row["template"]),
    variables: readVariables(text(row["variables"])),
    evidence: parseEvidence(text(row["evidence"])),
    restoredFrom: row["restored_from"] === null ? null : parseDigest(row["restored_from"]),
    memory: row["memory"] === 1n,
    manifest: row["manifest"] === null ? null : text(row["manifest"]),
  });
}

function readVariables(json: string): Readonly<Record<string, string>> {
  const value: unknown = JSON.parse(json);
  if (typeof value !== "object" || value === null) throw unreadable();
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, text(member)]));
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw unreadable();
}

function unreadable(): SpaceError {
  return new SpaceError("store/failed", { step: "read" });
}
