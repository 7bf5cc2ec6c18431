// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";

import { SpaceError } from "@space/model";

import {
  bits,
  type Der,
  explicit,
  identifier,
  implicit,
  integer,
  octets,
  sequence,
  set,
  time,
  utf8,
  yes,
} from "./der.ts";
import { alternativeNames, nameConstraints } from "./names.ts";

/** What a certificate's key may be used for. */
export type Usage = "server" | "client";

export type CertificateKind =
  | { readonly kind: "authority"; readonly permittedNames?: readonly string[] }
  | { readonly kind: "leaf"; readonly names: readonly string[]; readonly usages: readonly Usage[] };

export interface CertificateContents {
  readonly commonName: string;
  readonly publicKey: KeyObject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly holder: CertificateKind;
}

export interface CertificateIssuer {
  readonly commonName: string;
  readonly privateKey: KeyObject;
}

const commonNameLimit = 64;
const ecdsaWithSha256 = sequence(identifier("1.2.840.10045.4.3.2"));
const usageIdentifiers: Readonly<Record<Usage, string>> = {
  server: "1.3.6.1.5.5.7.3.1",
  client: "1.3.6.1.5.5.7.3.2",
};

/** Signs an X.509 v3 certificate with ECDSA over P-256 and returns its PEM. Throws `input/invalid`. */
export function signX509(issuer: CertificateIssuer, contents: CertificateContents): string {
  const signed = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(serialNumber()),
    ecdsaWithSha256,
    distinguishedName(issuer.commonName),
    sequence(time(contents.notBeforeMs), time(contents.notAfterMs)),
    distinguishedName(contents.commonName),
    contents.publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(...extensions(issuer, contents))),
  );
  const signature = sign("sha256", signed, { key: issuer.privateKey, dsaEncoding: "der" });
  return pem("CERTIFICATE", sequence(signed, ecdsaWithSha256, bits(signature)));
}

/** 127 random bits, never zero. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

function distinguishedName(commonName: string): Der {
  if (commonName === "" || commonName.length > commonNameLimit || /[^\x20-\x7e]/.test(commonName)) {
    throw new SpaceError("input/invalid", {
      field: "commonName",
      problem: `must be 1 to ${commonNameLimit} printable ASCII characters`,
    });
  }
  return sequence(set(sequence(identifier("2.5.4.3"), utf8(commonName))));
}

function extensions(issuer: CertificateIssuer, contents: CertificateContents): readonly Der[] {
  const { holder } = contents;
  const keys = [
    extension("2.5.29.14", false, octets(keyIdentifier(contents.publicKey))),
    extension("2.5.29.35", false, sequence(implicit(0, keyIdentifier(createPublicKey(issuer.privateKey))))),
  ];
  switch (holder.kind) {
    case "authority":
      return [
        extension("2.5.29.19", true, sequence(yes, integer(Buffer.from([0])))), // an authority, signing leaves only
        extension("2.5.29.15", true, bits(Buffer.from([0b0000_0110]), 1)), // keyCertSign, cRLSign
        ...(holder.permittedNames === undefined
          ? []
          : [extension("2.5.29.30", true, nameConstraints(holder.permittedNames))]),
        ...keys,
      ];
    case "leaf":
      return [
        extension("2.5.29.19", true, sequence()),
        extension("2.5.29.15", true, bits(Buffer.from([0b1000_0000]), 7)), // digitalSignature
        extension(
          "2.5.29.37",
          false,
          sequence(...holder.usages.map((usage) => identifier(usageIdentifiers[usage]))),
        ),
        ...(holder.names.length === 0 ? [] : [extension("2.5.29.17", false, alternativeNames(holder.names))]),
        ...keys,
      ];
  }
}

function extension(dotted: string, critical: boolean, value: Uint8Array): Der {
  return sequence(identifier(dotted), ...(critical ? [yes] : []), octets(value));
}

/** RFC 7093, method 1: the first 160 bits of the SHA-256 of the key. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const jwk = publicKey.export({ format: "jwk" });
  const point = [
    Buffer.from([4]),
    Buffer.from(jwk.x ?? "", "base64url"),
    Buffer.from(jwk.y ?? "", "base64url"),
  ];
  return createHash("sha256").update(Buffer.concat(point)).digest().subarray(0, 20);
}

function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** Reads a private key's PKCS 8 PEM. Throws `input/invalid` for anything but a P-256 key. */
export function parsePrivateKey(text: string): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
  } catch (cause) {
    throw notP256(cause);
  }
  throw notP256();
}

function notP256(cause?: unknown): SpaceError {
  return new SpaceError("input/invalid", { field: "key", problem: "is not a P-256 private key" }, { cause });
}
