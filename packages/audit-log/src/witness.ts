// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createPrivateKey, type KeyObject, sign, verify, X509Certificate } from "node:crypto";
import {
  importPublicKey,
  KeyRing,
  keyId,
  newSigningKey,
  publicKeyText,
  signAuditCheckpoint,
} from "@space/capability";
import { type AuditWitness, type CheckpointSigner, isSpaceError } from "@space/model";

/** Whose word a verifier takes, from a source that the log's writer cannot change. */
export interface AuditTrust {
  /** The installation's root key: vouches for the control plane's signing keys. */
  readonly rootKey: KeyObject;
  /** PEM of the mesh's authority: vouches for workers. Undefined: no worker's log can be verified. */
  readonly meshAuthority: string | undefined;
}

/** A component's certificate on the mesh, with its key. Both PEM. */
export interface MeshCertificate {
  readonly certificate: string;
  readonly key: string;
}

/**
 * Signs with a key of this very process, which exists nowhere else, and which the component's certificate on the mesh
 * vouches for. For processes that hold no signing key.
 */
export function meshCheckpointSigner({ certificate, key }: MeshCertificate): CheckpointSigner {
  const own = newSigningKey();
  const publicKey = publicKeyText(own.publicKey);
  const der = new X509Certificate(certificate).raw.toString("base64url");
  const signature = sign("sha256", statementOf(publicKey), createPrivateKey(key)).toString("base64url");
  const witness: AuditWitness = { kind: "certificate", proof: `${der}.${publicKey}.${signature}` };
  return (checkpoint) => ({ token: signAuditCheckpoint(own, checkpoint), witness });
}

/** What the certificate's key signs. */
function statementOf(publicKey: string): Buffer {
  return Buffer.from(`space-audit-key\n${publicKey}\n`);
}

/** Finds the keys that witnesses have vouched for so far. */
export class WitnessedKeys {
  readonly #trust: AuditTrust;
  readonly #process: string;
  readonly #rings: KeyRing[] = [];
  readonly #keys = new Map<string, KeyObject>();

  /** `process`: whose log it is; a worker's certificate must name it. */
  constructor(trust: AuditTrust, process: string) {
    this.#trust = trust;
    this.#process = process;
  }

  readonly find = (kid: string): KeyObject | undefined =>
    this.#keys.get(kid) ?? this.#rings.map((ring) => ring.find(kid)).find((key) => key !== undefined);

  /** Takes a witness in. What is wrong with it, or undefined. */
  add(kind: unknown, proof: unknown): string | undefined {
    if (typeof proof !== "string") return "a witness without a proof";
    if (kind === "bundle") return this.#addBundle(proof);
    return kind === "certificate" ? this.#addCertified(proof) : "a witness of no known kind";
  }

  /** Only the control plane's log is signed with its keys. */
  #addBundle(token: string): string | undefined {
    if (this.#process !== "control-plane") return "a bundle vouches for the control plane only";
    try {
      this.#rings.push(KeyRing.fromBundle(token, this.#trust.rootKey));
      return undefined;
    } catch (error) {
      if (isSpaceError(error, "bundle/refused")) return "a bundle that the root has not signed";
      throw error;
    }
  }

  #addCertified(proof: string): string | undefined {
    const { meshAuthority } = this.#trust;
    if (meshAuthority === undefined) return "a certificate, and no authority to judge it by";
    const [der = "", publicKey = "", signature = ""] = proof.split(".");
    const certificate = parseCertificate(der);
    const key = parseKey(publicKey);
    if (certificate === undefined || key === undefined) return "a witness that cannot be read";
    const authority = new X509Certificate(meshAuthority);
    if (!certificate.checkIssued(authority) || !certificate.verify(authority.publicKey)) {
      return "a certificate of another authority";
    }
    if (certificate.subject !== `CN=${this.#process}`) return "a certificate of another component";
    if (
      !verify("sha256", statementOf(publicKey), certificate.publicKey, Buffer.from(signature, "base64url"))
    ) {
      return "a key that the certificate's does not vouch for";
    }
    this.#keys.set(keyId(key), key);
    return undefined;
  }
}

function parseCertificate(der: string): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(der, "base64url"));
  } catch {
    return undefined; // the caller reports it
  }
}

function parseKey(text: string): KeyObject | undefined {
  try {
    return importPublicKey(text);
  } catch {
    return undefined; // the caller reports it
  }
}
