// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { type CapabilityVerification, CapabilityVerifier, KeyRing } from "@space/capability";
import { type RuntimeRecordStore, SpaceError } from "@space/model";

/** the public keys that this worker trusts: one bundle, signed by the pinned root, durable, never rolled back. */
export class Keys {
  readonly #root: KeyObject;
  readonly #store: RuntimeRecordStore;
  readonly #memoryLimit: number;
  #ring: KeyRing | undefined;
  #verifier: CapabilityVerifier | undefined;

  /** Reads the stored bundle. Throws `bundle/refused` when it is not the root's. */
  constructor(root: KeyObject, store: RuntimeRecordStore, memoryLimit: number) {
    this.#root = root;
    this.#store = store;
    this.#memoryLimit = memoryLimit;
    const stored = store.readBundle();
    if (stored !== undefined) this.#use(KeyRing.fromBundle(stored.token, root, stored.version));
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

  /** form, key and signature, remembered; nothing else. */
  verify(capability: string): CapabilityVerification {
    return this.#verifier?.verify(capability) ?? { kind: "refused", reason: "key" };
  }

  /** durable before it counts. False when this version is held already. Throws `bundle/refused` or `store/failed`. */
  replace(bundle: string): boolean {
    const ring = KeyRing.fromBundle(bundle, this.#root, Math.max(1, this.version));
    if (ring.version === this.version) return false;
    if (!this.#store.writeBundle(ring.version, bundle)) {
      throw new SpaceError("bundle/refused", { problem: "older version" });
    }
    this.#use(ring);
    return true;
  }

  #use(ring: KeyRing): void {
    this.#ring = ring;
    if (this.#verifier === undefined) {
      this.#verifier = new CapabilityVerifier({ keys: ring, memoryLimit: this.#memoryLimit });
    } else {
      this.#verifier.replaceKeys(ring); // empties the memory
    }
  }
}
