// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// What R-12 decides of a record, as pure functions: the worker and the model of the protocol share them.

import { readVouchedCertificate } from "@space/capability";
import {
  compareIdentity,
  type ExecutionCertificate,
  type ExecutionIdentity,
  identityToJson,
  type RuntimeRecord,
  SpaceError,
  sameRoute,
} from "@space/model";

/** how an offered certificate stands to the record. */
export type Order = "first" | "next-generation" | "next-attempt" | "same" | "reissued";

/**
 * by (generation, attempt); lower never replaces higher, and one generation is one process. Throws `record/stale` or
 * `record/conflict`: then nothing changes.
 */
export function orderOf(record: RuntimeRecord, certificate: ExecutionCertificate, token: string): Order {
  const { identity } = certificate;
  const held = record.identity;
  if (identity.generation > held.generation) return "next-generation";
  if (identity.generation < held.generation) throw outOfOrder("record/stale", record, certificate);
  if (!sameRoute(identity, held) || identity.activation.id !== held.activation.id)
    throw outOfOrder("record/conflict", record, certificate);
  // A tombstone stays: this generation never runs again.
  if (record.state === "retired") throw outOfOrder("record/stale", record, certificate);
  if (identity.activation.attempt > held.activation.attempt) return "next-attempt";
  if (identity.activation.attempt < held.activation.attempt)
    throw outOfOrder("record/stale", record, certificate);
  return token === record.certificate ? "same" : orderOfReissue(record, certificate);
}

/** The control plane may have signed the same facts again after an answer that it did not hear; other facts conflict. */
function orderOfReissue(record: RuntimeRecord, certificate: ExecutionCertificate): "same" | "reissued" {
  // verified when it was installed; the key that signed it may have been removed since (incident 30).
  const held = readVouchedCertificate(record.certificate, record.certificateDigest);
  if (factsOf(held) !== factsOf(certificate)) throw outOfOrder("record/conflict", record, certificate);
  return certificate.issuedAtSeconds > held.issuedAtSeconds ? "reissued" : "same";
}

function factsOf(certificate: ExecutionCertificate): string {
  const { identity, publicKey, previous, restoredFrom, origin } = certificate;
  return JSON.stringify([identityToJson(identity), publicKey, previous, restoredFrom, origin]);
}

/** a retirement of another identity than the record's changes no record. */
export function retires(record: RuntimeRecord, identity: ExecutionIdentity): boolean {
  return compareIdentity(record.identity, identity) === "identical";
}

function outOfOrder(
  code: "record/stale" | "record/conflict",
  record: RuntimeRecord,
  { identity }: ExecutionCertificate,
): SpaceError {
  const { sandboxId, generation } = identity;
  return new SpaceError(code, { sandboxId, installed: record.identity.generation, offered: generation });
}
