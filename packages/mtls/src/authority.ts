// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";

import { Secret, SpaceError } from "@space/model";

import { parsePrivateKey, signX509, type Usage } from "./certificate.ts";
import { thumbprint } from "./thumbprint.ts";

/** Who signs certificates. Its key never leaves the machine; its certificate is what others trust. */
export interface Authority {
  readonly commonName: string;
  /** PEM. */
  readonly certificate: string;
  /** PKCS 8 PEM. */
  readonly key: Secret<string>;
}

/** A certificate and its key, as one component holds them. */
export interface TlsIdentity {
  /** The common name: a WorkerId, `gateway`, … or the domain of the edge. */
  readonly name: string;
  /** PEM. */
  readonly certificate: string;
  /** PKCS 8 PEM. */
  readonly key: Secret<string>;
  /** what a capability's `cnf` names. */
  readonly thumbprint: string;
}

export interface AuthorityRequest {
  readonly commonName: string;
  readonly nowMs: number;
  readonly days?: number;
  /** When given, it can vouch for these names and names below them only, whoever holds its key. */
  readonly permittedNames?: readonly string[];
}

export interface IssueRequest {
  readonly commonName: string;
  /** DNS names, with `*.` at the front or not, and IP addresses. */
  readonly names?: readonly string[];
  readonly nowMs: number;
  readonly days?: number;
}

export const authorityDays = 3650;
/** Some TLS clients refuse a server's certificate that lives longer. */
export const leafDaysLimit = 825;
export const leafDays = 397;

const dayMs = 86_400_000;
/** Certificates begin this long in the past, for the clocks of others. */
const backdateMs = 3_600_000;

/** Makes a new authority with a fresh ECDSA P-256 key. Throws `input/invalid`. */
export function createAuthority(request: AuthorityRequest): Authority {
  const { privateKey, publicKey } = newKeyPair();
  const { commonName, nowMs, permittedNames, days = authorityDays } = request;
  const certificate = signX509(
    { commonName, privateKey },
    {
      commonName,
      publicKey,
      notBeforeMs: nowMs - backdateMs,
      notAfterMs: nowMs + days * dayMs,
      holder: permittedNames === undefined ? { kind: "authority" } : { kind: "authority", permittedNames },
    },
  );
  return { commonName, certificate, key: new Secret(keyPem(privateKey)) };
}

/** For the public edge: a server only. Throws `input/invalid`. */
export function issueServer(authority: Authority, request: IssueRequest): TlsIdentity {
  return issue(authority, request, ["server"]);
}

/** For something that only dials. Throws `input/invalid`. */
export function issueClient(authority: Authority, request: IssueRequest): TlsIdentity {
  return issue(authority, request, ["client"]);
}

/** For a component of the mesh, which serves and dials. Throws `input/invalid`. */
export function issuePeer(authority: Authority, request: IssueRequest): TlsIdentity {
  return issue(authority, request, ["server", "client"]);
}

/**
 * Certifies a key that the component made itself and keeps to itself, given its public half as SPKI PEM: how a worker
 * on another machine enrols. Returns the certificate's PEM. Throws `input/invalid`.
 */
export function certifyPeer(authority: Authority, publicKey: string, request: IssueRequest): string {
  return certify(authority, parsePublicKey(publicKey), request, ["server", "client"]);
}

/** A fresh P-256 key: the private half as PKCS 8 PEM, the public half as SPKI PEM. */
export function newTlsKey(): { readonly key: Secret<string>; readonly publicKey: string } {
  const { privateKey, publicKey } = newKeyPair();
  return {
    key: new Secret(keyPem(privateKey)),
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}

function issue(authority: Authority, request: IssueRequest, usages: readonly Usage[]): TlsIdentity {
  const { privateKey, publicKey } = newKeyPair();
  const certificate = certify(authority, publicKey, request, usages);
  return {
    name: request.commonName,
    certificate,
    key: new Secret(keyPem(privateKey)),
    thumbprint: thumbprint(certificate),
  };
}

function certify(
  authority: Authority,
  publicKey: KeyObject,
  request: IssueRequest,
  usages: readonly Usage[],
): string {
  const { commonName, names = [], nowMs, days = leafDays } = request;
  if (!(days > 0 && days <= leafDaysLimit)) {
    throw new SpaceError("input/invalid", { field: "days", problem: `must be 1 to ${leafDaysLimit}` });
  }
  const issuer = { commonName: authority.commonName, privateKey: parsePrivateKey(authority.key.reveal()) };
  return signX509(issuer, {
    commonName,
    publicKey,
    notBeforeMs: nowMs - backdateMs,
    notAfterMs: nowMs + days * dayMs,
    holder: { kind: "leaf", names, usages },
  });
}

function newKeyPair(): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

const keyPem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

function parsePublicKey(text: string): KeyObject {
  try {
    // A private key would be accepted too and its public half taken: somebody has sent us a secret by mistake.
    if (text.startsWith("-----BEGIN PUBLIC KEY-----")) {
      const key = createPublicKey(text);
      if (key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
    }
  } catch (cause) {
    throw notPublic(cause);
  }
  throw notPublic();
}

function notPublic(cause?: unknown): SpaceError {
  return new SpaceError(
    "input/invalid",
    { field: "publicKey", problem: "is not a P-256 public key" },
    { cause },
  );
}
