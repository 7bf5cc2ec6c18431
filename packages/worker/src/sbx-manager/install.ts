// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { certificateDigest, verifyCertificate } from "@space/capability";
import {
  type ActivationRecord,
  compareIdentity,
  type ExecutionCertificate,
  evidenceToText,
  identityToJson,
  type RuntimeRecord,
  SpaceError,
  sameRoute,
} from "@space/model";
import { endEpoch, isPlacedHere, replaceRecord, stopExecution, type WorkerParts } from "./parts.ts";
import { orderOf } from "./record-order.ts";

/** Verified by this worker itself, whoever carried it. Throws `certificate/refused`. */
export function readCertificate(parts: WorkerParts, token: string): ExecutionCertificate {
  const certificate = verifyCertificate(token, parts.keys.ring);
  if (!isPlacedHere(parts, certificate.identity.placement)) throw refused("placed elsewhere");
  return certificate;
}

/**
 * the certificate becomes the runtime record, synced before this resolves. Only for a process that really runs
 * here with the key that the certificate names. Repeating it changes nothing.
 */
export async function install(
  parts: WorkerParts,
  token: string,
  certificate: ExecutionCertificate,
): Promise<void> {
  const { identity } = certificate;
  const record = parts.records.read(identity.sandboxId);
  const order = record === undefined ? "first" : orderOf(record, certificate, token);
  const activation = checkProcess(parts, certificate);
  if (order !== "same") {
    const next = recordOf(token, certificate, activation, record?.epoch ?? 1n);
    if (record !== undefined && order === "next-generation") endEpoch(parts, record, next);
    else replaceRecord(parts, record, next); // another attempt alone keeps the epoch and its streams
    parts.audit.record("execution/installed", { identity: identityToJson(identity), reason: order });
  }
  await stopSuperseded(parts, activation);
}

function checkProcess(parts: WorkerParts, certificate: ExecutionCertificate): ActivationRecord {
  const { identity, publicKey, restoredFrom } = certificate;
  const activation = parts.executions.find(identity.activation.id);
  if (activation === undefined || !sameRoute(activation.identity, identity))
    throw refused("no such activation runs here");
  if (activation.publicKey !== publicKey) throw refused("public key is another");
  if (activation.restoredFrom !== restoredFrom) throw refused("restored from another snapshot");
  return activation;
}

function recordOf(
  token: string,
  { identity }: ExecutionCertificate,
  { evidence }: ActivationRecord,
  epoch: bigint,
): RuntimeRecord {
  return {
    identity,
    state: "installed",
    certificate: token,
    certificateDigest: certificateDigest(token),
    epoch,
    hostBootId: evidence.hostBootId,
    evidence: evidenceToText(evidence),
  };
}

/** At most one incarnation acts: every older process of the sandbox ends, also when an earlier try could not end it. */
async function stopSuperseded(parts: WorkerParts, { identity }: ActivationRecord): Promise<void> {
  for (const other of parts.executions.ofSandbox(identity.sandboxId)) {
    if (compareIdentity(other.identity, identity) === "older-generation")
      await stopExecution(parts, other, "superseded");
  }
}

function refused(problem: string): SpaceError {
  return new SpaceError("certificate/refused", { problem });
}
