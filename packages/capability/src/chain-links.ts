// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Digest, type ExecutionCertificate, firstGeneration, SpaceError, sameRoute } from "@space/model";
import { verifyCertificate } from "./certificate.ts";
import { certificateDigest } from "./digest.ts";
import type { KeyRing } from "./key-ring.ts";

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

/** the certificates, newest first, each linked to the next. Throws `certificate/refused`. */
export function verifyLinks(certificates: readonly string[], ring: KeyRing): readonly ChainLink[] {
  if (certificates.length === 0) throw broken("no certificate");
  if (certificates.length > chainLinksLimit) throw broken("too many certificates");
  const links = certificates.map((token) => ({
    digest: certificateDigest(token),
    certificate: verifyCertificate(token, ring),
  }));
  links.forEach(({ certificate }, at) => {
    checkPrevious(certificate, links[at + 1]);
  });
  return links;
}

/** the previous certificate is exactly the next in the list, or there is none and the chain begins here. */
function checkPrevious(certificate: ExecutionCertificate, previous: ChainLink | undefined): void {
  if (previous !== undefined) {
    if (certificate.previous !== previous.digest) throw broken("previous is another");
    return checkSuccession(certificate, previous.certificate);
  }
  const isBeginning = certificate.previous === null && certificate.identity.generation === firstGeneration;
  if (!isBeginning) throw broken("beginning is missing");
}

/** the generation grows; within one, only the attempt does, on the same process with the same key. */
function checkSuccession(newer: ExecutionCertificate, older: ExecutionCertificate): void {
  const after = newer.identity;
  const before = older.identity;
  if (after.sandboxId !== before.sandboxId) throw broken("other sandbox");
  if (after.generation > before.generation) return;
  if (!sameRoute(after, before)) {
    throw broken(
      after.generation < before.generation ? "order of generations" : "two processes in one generation",
    );
  }
  if (after.activation.attempt <= before.activation.attempt) throw broken("order of generations");
  if (after.activation.id !== before.activation.id || newer.publicKey !== older.publicKey) {
    throw broken("two processes in one generation");
  }
}

function broken(problem: CertificateBreak): SpaceError {
  return new SpaceError("certificate/refused", { problem });
}
