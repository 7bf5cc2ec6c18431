// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Secret } from "../secret.ts";
import type { SigningKeyRecord } from "../signing-key.ts";

/** a verification bundle as signed by the root. */
export interface StoredKeyBundle {
  readonly version: number;
  readonly token: string;
}

/** What becomes of one key. */
export type SigningKeyChange =
  | { readonly kind: "announce"; readonly kid: string; readonly publicKey: string }
  /** announced → signing; the one that signed is retiring from now on. */
  | { readonly kind: "promote"; readonly kid: string }
  /** announced, signing, retiring → removed or revoked. Only with a bundle that does not hold it any more. */
  | { readonly kind: "end"; readonly kid: string; readonly as: "removed" | "revoked" }
  | { readonly kind: "ask-revocation"; readonly kid: string };

export interface SigningKeyStep {
  /** Version of the newest bundle that the decision was made on; 0 for none. */
  readonly onVersion: number;
  /** Its successor, where the step changes what receivers trust. */
  readonly bundle: StoredKeyBundle | null;
  readonly changes: readonly SigningKeyChange[];
  readonly atMs: number;
}

/**
 * The durable truth about signing keys and bundles; one control plane writes it. A step is one conditional write, whole
 * or not at all. Throws `store/failed`.
 */
export interface SigningKeyStore {
  /** Every key there ever was, the oldest first. */
  all(): Promise<readonly SigningKeyRecord[]>;
  /** Every bundle there ever was, the oldest first. */
  bundles(): Promise<readonly StoredKeyBundle[]>;
  /** Wins only on the bundle version that it names and when every key is in a state that allows its change. */
  change(step: SigningKeyStep): Promise<boolean>;
}

/**
 * Where the private halves of signing keys are, by key id, as PKCS #8 PEM. Written durably before it resolves; nothing
 * of a destroyed one is left. Throws `store/failed`.
 */
export interface PrivateKeyVault {
  write(kid: string, pem: Secret<string>): Promise<void>;
  read(kid: string): Promise<Secret<string> | undefined>;
  destroy(kid: string): Promise<void>;
}

/** the root key, kept apart. Whoever holds this can ask for its signature; the key is read for each use anew. */
export interface RootKey {
  /** The pinned public half: 32 raw bytes, base64url. Always there. */
  readonly publicKey: string;
  /** Reads the key (PKCS #8 PEM), hands it to `work` and forgets it. Throws `root-key/absent` when it is not here. */
  use<T>(work: (pem: Secret<string>) => T): Promise<T>;
}
