// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { type KeyBundleStore, SpaceError } from "@space/model";
import { KeyRing } from "./key-ring.ts";
import { type CapabilityVerification, CapabilityVerifier } from "./verifier.ts";

export interface TrustedKeysOptions {
  /** The pinned root that signs bundles. */
  readonly root: KeyObject;
  /** Where the newest bundle is kept; its writes are durable before they return. */
  readonly store: KeyBundleStore;
  /** Verified tokens remembered. */
  readonly memoryLimit?: number;
}

/**
 * the public keys that one receiver trusts: one bundle, signed by the pinned root, durable, never rolled back. A
 * key that a newer bundle leaves out is revoked from the moment that this bundle is taken.
 */
export class TrustedKeys {
  readonly #root: KeyObject;
  readonly #store: KeyBundleStore;
  readonly #verifier: CapabilityVerifier;
  #ring: KeyRing | undefined;

  /** Reads the stored bundle. Throws `bundle/refused` when it is not the root's. */
  constructor({ root, store, memoryLimit }: TrustedKeysOptions) {
    this.#root = root;
    this.#store = store;
    const stored = store.readBundle();
    this.#ring = stored && KeyRing.fromBundle(stored.token, root, stored.version);
    this.#verifier = new CapabilityVerifier({
      keys: this.#ring ?? KeyRing.none,
      ...(memoryLimit === undefined ? {} : { memoryLimit }),
    });
  }

  /** 0 before the first bundle. */
  get version(): number {
    return this.#ring?.version ?? 0;
  }

  /** Throws `certificate/refused` before the first bundle: nothing can be verified then. */
  get ring(): KeyRing {
    if (this.#ring !== undefined) return this.#ring;
    throw new SpaceError("certificate/refused", { problem: "no keys yet" });
  }

  /** Whether the key of this id counts now. */
  holds(kid: string): boolean {
    return this.#ring?.find(kid) !== undefined;
  }

  /** form, key and signature, remembered; nothing else. */
  verify(capability: string): CapabilityVerification {
    return this.#verifier.verify(capability);
  }

  /**
   * durable before it counts. False when exactly this bundle is held already. Throws `bundle/rollback` for an older
   * one, `bundle/refused` for one that the root did not sign or a second one of the held version, and `store/failed`.
   */
  replace(bundle: string): boolean {
    const ring = KeyRing.fromBundle(bundle, this.#root, Math.max(1, this.version));
    if (ring.version === this.version) {
      if (this.#store.readBundle()?.token === bundle) return false;
      throw new SpaceError("bundle/refused", { problem: "another of the same version" });
    }
    if (!this.#store.writeBundle(ring.version, bundle)) {
      const held = this.#store.readBundle()?.version ?? 0;
      throw new SpaceError("bundle/rollback", { held, offered: ring.version });
    }
    this.#ring = ring;
    this.#verifier.replaceKeys(ring); // empties the memory
    return true;
  }
}
