// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ConnectionOptions, PeerCertificate, SecureVersion, TlsOptions } from "node:tls";

import { SpaceError } from "@space/model";

import type { TlsIdentity } from "./authority.ts";

const meshVersion: SecureVersion = "TLSv1.3";
const edgeVersion: SecureVersion = "TLSv1.2";
/** How long a connection may take over its handshake. */
export const handshakeLimitMs = 10_000;

/**
 * For a listener of the mesh: TLS 1.3, and a peer without a certificate of this authority is refused in the handshake.
 * Which component it is, `peerName` says; the listener must ask.
 */
export function serverOptions(identity: TlsIdentity, authorityCertificate: string): TlsOptions {
  return {
    ...holding(identity),
    ca: authorityCertificate,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: meshVersion,
    handshakeTimeout: handshakeLimitMs,
  };
}

/**
 * For dialling one component of the mesh by its name: TLS 1.3, our certificate shown, and the connection refused unless
 * the peer's certificate is of this authority and of exactly that component. The address dialled proves nothing.
 */
export function clientOptions(
  identity: TlsIdentity,
  authorityCertificate: string,
  expectedName: string,
): ConnectionOptions {
  return {
    ...holding(identity),
    ca: authorityCertificate,
    rejectUnauthorized: true,
    minVersion: meshVersion,
    checkServerIdentity: (_host: string, certificate: PeerCertificate): Error | undefined =>
      isOnlyName(certificate, expectedName)
        ? undefined
        : new SpaceError("endpoint/mismatch", { problem: "the certificate is of another component" }),
  };
}

/** For the public edge, which asks for no client certificate. */
export function edgeOptions(identity: TlsIdentity): TlsOptions {
  return { ...holding(identity), minVersion: edgeVersion, handshakeTimeout: handshakeLimitMs };
}

function holding(identity: TlsIdentity): { readonly key: string; readonly cert: string } {
  return { key: identity.key.reveal(), cert: identity.certificate };
}

/** The subject consists of this one common name. */
function isOnlyName(certificate: PeerCertificate, name: string): boolean {
  const subject = Object.entries(certificate.subject);
  return subject.length === 1 && subject[0]?.[0] === "CN" && subject[0][1] === name;
}
