// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash, X509Certificate } from "node:crypto";

import { SpaceError } from "@space/model";

/**
 * the `x5t#S256` of a certificate given as DER or PEM, that is the base64url SHA-256 of its DER. Throws
 * `input/invalid` when it is not a certificate.
 */
export function thumbprint(certificate: Uint8Array | string): string {
  return thumbprintOf(parseCertificate(certificate));
}

export function thumbprintOf(certificate: X509Certificate): string {
  return createHash("sha256").update(certificate.raw).digest("base64url");
}

export function parseCertificate(certificate: Uint8Array | string): X509Certificate {
  try {
    return new X509Certificate(certificate);
  } catch (cause) {
    throw new SpaceError("input/invalid", { field: "certificate", problem: "is not X.509" }, { cause });
  }
}
