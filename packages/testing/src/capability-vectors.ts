// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { publicKeyText, type SigningKey } from "@space/capability";
import { type AdmissionVector, admissionVectors } from "./admission-vectors.ts";
import {
  bundle,
  execution,
  root,
  signer,
  successor,
  type TokenVector,
  tokenVectors,
} from "./token-vectors.ts";

export interface NamedKey {
  readonly kid: string;
  /** 32 raw bytes, base64url. */
  readonly publicKey: string;
}

/** The whole of `vectors/capability.json`. */
export interface CapabilityVectors {
  readonly about: readonly string[];
  readonly root: NamedKey;
  readonly keys: readonly NamedKey[];
  readonly execution: NamedKey;
  readonly bundle: string;
  readonly tokens: readonly TokenVector[];
  readonly admissions: readonly AdmissionVector[];
}

const named = ({ kid, publicKey }: SigningKey): NamedKey => ({ kid, publicKey: publicKeyText(publicKey) });

const about = [
  "What SPACE signs, with what a verifier must say of it. Made by packages/testing/src/make-vectors.ts.",
  "tokens: judge each by its kind with the keys of the bundle (a bundle with root, a manifest with execution).",
  "admissions: each token is verified; compare it with the record at nowMs. The reason is for the audit log.",
];

/** The same value every time: keys, times and ids are fixed, and Ed25519 draws no chance. */
export function capabilityVectors(): CapabilityVectors {
  return {
    about,
    root: named(root),
    keys: [named(signer), named(successor)],
    execution: named(execution),
    bundle,
    tokens: tokenVectors(),
    admissions: admissionVectors(),
  };
}

/** The file's text. */
export function capabilityVectorsText(): string {
  return `${JSON.stringify(capabilityVectors(), null, 1)}\n`;
}
