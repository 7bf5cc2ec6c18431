// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";

import { SpaceError } from "@space/model";

import { thumbprintOf } from "./thumbprint.ts";

/** One common name and nothing else; names of components need no escaping. */
const subjectForm = /^CN=([A-Za-z0-9._-]{1,64})$/;

/**
 * The component at the other end (a WorkerId, `gateway`, …), as its certificate says and the mesh's authority signed.
 * Throws `endpoint/mismatch` when the handshake has not verified the peer.
 */
export function peerName(socket: TLSSocket): string {
  const name = subjectForm.exec(verifiedCertificate(socket).subject)?.[1];
  if (name === undefined) throw mismatch("the certificate names no component");
  return name;
}

/** the thumbprint of the peer's certificate, to compare with a capability's `cnf`. Throws `endpoint/mismatch`. */
export function peerThumbprint(socket: TLSSocket): string {
  return thumbprintOf(verifiedCertificate(socket));
}

function verifiedCertificate(socket: TLSSocket): X509Certificate {
  if (!socket.authorized) throw mismatch("the peer is not verified");
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) throw mismatch("the peer showed no certificate");
  return certificate;
}

function mismatch(problem: string): SpaceError {
  return new SpaceError("endpoint/mismatch", { problem });
}
