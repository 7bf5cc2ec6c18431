// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { exportSigningKey, publicKeyText, type SigningKey } from "@space/capability";
import { type KeyBundleStore, type PrivateKeyVault, type RootKey, Secret, SpaceError } from "@space/model";

/** A vault in memory; `texts` is what its disk would hold. */
export class MemoryKeyVault implements PrivateKeyVault {
  readonly texts = new Map<string, string>();

  async write(kid: string, pem: Secret<string>): Promise<void> {
    this.texts.set(kid, pem.reveal());
  }

  async read(kid: string): Promise<Secret<string> | undefined> {
    const text = this.texts.get(kid);
    return text === undefined ? undefined : new Secret(text);
  }

  async destroy(kid: string): Promise<void> {
    this.texts.delete(kid);
  }
}

/** A root key that can be taken away, as a medium is. */
export class MemoryRootKey implements RootKey {
  readonly publicKey: string;
  isHere = true;
  /** How often its signature was asked for. */
  uses = 0;
  readonly #pem: Secret<string>;

  constructor(key: SigningKey) {
    this.publicKey = publicKeyText(key.publicKey);
    this.#pem = new Secret(exportSigningKey(key));
  }

  async use<T>(work: (pem: Secret<string>) => T): Promise<T> {
    if (!this.isHere) throw new SpaceError("root-key/absent", {});
    this.uses += 1;
    return work(this.#pem);
  }
}

/** A receiver's bundle in memory, with the rule of the real ones. */
export class MemoryBundleStore implements KeyBundleStore {
  #held: { readonly version: number; readonly token: string } | undefined;

  readBundle(): { readonly version: number; readonly token: string } | undefined {
    return this.#held;
  }

  writeBundle(version: number, token: string): boolean {
    if (this.#held !== undefined && this.#held.version >= version) return false;
    this.#held = Object.freeze({ version, token });
    return true;
  }
}
