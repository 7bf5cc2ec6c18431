// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Digest,
  type ExecutionCertificate,
  firstGeneration,
  isSpaceError,
  SpaceError,
  sameRoute,
} from "@space/model";
import { verifyCertificate } from "./certificate.ts";
import { certificateDigest } from "./digest.ts";
import type { KeyHolder } from "./jws.ts";

/** Links of one chain. */
export const chainLinksLimit = 100_000;

/** a verified certificate with its name in the chain. */
export interface ChainLink {
  readonly digest: Digest;
  readonly certificate: ExecutionCertificate;
}

/** Where a chain of certificates breaks. */
export type CertificateBreak =
  | "no certificate"
  | "too many certificates"
  | "other sandbox"
  | "previous is another"
  | "order of generations"
  | "two processes in one generation"
  | "beginning is missing";

/** the certificates, newest first, each linked to the next. Throws `chain/refused`. */
export function verifyLinks(certificates: readonly string[], keys: KeyHolder): readonly ChainLink[] {
  const count = certificates.length;
  if (count === 0) throw broken("certificates", "no certificate");
  if (count > chainLinksLimit) throw broken("certificates", "too many certificates");
  const links = certificates.map((token, at) => readLink(token, keys, nameOf("certificate", at, count)));
  links.forEach(({ certificate }, at) => {
    const problem = breakBefore(certificate, links[at + 1]);
    if (problem !== undefined) throw broken(nameOf("certificate", at, count), problem);
  });
  return links;
}

function readLink(token: string, keys: KeyHolder, link: string): ChainLink {
  try {
    return { digest: certificateDigest(token), certificate: verifyCertificate(token, keys) };
  } catch (cause) {
    if (!isSpaceError(cause, "certificate/refused")) throw cause;
    throw new SpaceError("chain/refused", { link, problem: cause.details.problem }, { cause });
  }
}

/** the previous certificate is exactly the next in the list, or there is none and the chain begins here. */
function breakBefore(
  certificate: ExecutionCertificate,
  previous: ChainLink | undefined,
): CertificateBreak | undefined {
  if (previous !== undefined) {
    if (certificate.previous !== previous.digest) return "previous is another";
    return breakOfSuccession(certificate, previous.certificate);
  }
  const isBeginning = certificate.previous === null && certificate.identity.generation === firstGeneration;
  return isBeginning ? undefined : "beginning is missing";
}

/** the generation grows; within one, only the attempt does, on the same process with the same key. */
export function breakOfSuccession(
  newer: ExecutionCertificate,
  older: ExecutionCertificate,
): CertificateBreak | undefined {
  const after = newer.identity;
  const before = older.identity;
  if (after.sandboxId !== before.sandboxId) return "other sandbox";
  if (after.generation > before.generation) return undefined;
  if (!sameRoute(after, before)) {
    return after.generation < before.generation ? "order of generations" : "two processes in one generation";
  }
  if (after.activation.attempt <= before.activation.attempt) return "order of generations";
  const isSameProcess =
    after.activation.id === before.activation.id &&
    newer.publicKey === older.publicKey &&
    newer.restoredFrom === older.restoredFrom;
  return isSameProcess ? undefined : "two processes in one generation";
}

/** How an error names one statement of a chain. */
export function nameOf(what: "bundle" | "certificate" | "manifest", at: number, count: number): string {
  return `${what} ${at + 1} of ${count}`;
}

function broken(link: string, problem: CertificateBreak): SpaceError {
  return new SpaceError("chain/refused", { link, problem });
}
