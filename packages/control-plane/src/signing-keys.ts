// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import {
  exportSigningKey,
  importPublicKey,
  importSigningKey,
  KeyArchive,
  newSigningKey,
  publicKeyText,
  type SigningKey,
  signKeyBundle,
} from "@space/capability";
import {
  type AuditSink,
  type Clock,
  isSpaceError,
  type KeyChangeReason,
  type PrivateKeyVault,
  type RootKey,
  Secret,
  type SigningKeyChange,
  type SigningKeyRecord,
  type SigningKeyState,
  type SigningKeyStore,
  SpaceError,
  type StoredKeyBundle,
} from "@space/model";

/** Where an installation's keys are. */
export interface KeyPorts {
  /** signs the bundles of verification keys, and is otherwise left alone. */
  readonly root: RootKey;
  readonly vault: PrivateKeyVault;
  readonly store: SigningKeyStore;
}

interface KeyParts extends KeyPorts {
  readonly clock: Clock;
  readonly audit: AuditSink;
}

/** How often an opening looks whether there is a key that signs, before it gives up. */
const openingLooks = 4;

/** Keys in one bundle: a rotation needs two, and revocations on top of rotations a few more. */
export const bundledKeysLimit = 8;

/**
 * the signing keys of this control plane: the one that signs in memory, the others in the store. Every change is
 * one conditional write with the bundle that it makes, signed by the root. When a key may change is the rotation's
 * business; nothing here waits for receivers. One call at a time.
 */
export class SigningKeys {
  readonly #parts: KeyParts;
  readonly #root: KeyObject;
  #records: readonly SigningKeyRecord[] = [];
  #bundles: readonly StoredKeyBundle[] = [];
  #archive: KeyArchive;
  #current: SigningKey | undefined;

  private constructor(parts: KeyParts) {
    this.#parts = parts;
    this.#root = importPublicKey(parts.root.publicKey);
    this.#archive = KeyArchive.fromBundles([], this.#root);
  }

  /**
   * Reads the keys; a first start, and one whose signing key is lost, makes one that signs at once. Throws
   * `root-key/absent` when that needs the root and it is not here, `bundle/refused` when the bundles are another root's.
   */
  static async open(parts: KeyParts): Promise<SigningKeys> {
    const keys = new SigningKeys(parts);
    // More than once: another replica may have rotated between two reads, or made the first key just now.
    for (let looks = 1; looks <= openingLooks; looks += 1) {
      await keys.refresh();
      if (keys.#isWhole) return keys;
      if (looks === 1) continue;
      try {
        await keys.#begin();
        return keys;
      } catch (error) {
        const isTooLate = isSpaceError(error, "store/failed") || isSpaceError(error, "signing-key/unknown");
        if (!isTooLate || looks === openingLooks) throw error;
      }
    }
    return keys;
  }

  /** takes note of what another replica has changed, and signs with the key that signs now. Throws `store/failed`. */
  async refresh(): Promise<void> {
    await this.#load();
    const signing = this.inState("signing")[0];
    if (signing === undefined || signing.kid === this.#current?.kid) return;
    const pem = await this.#parts.vault.read(signing.kid);
    if (pem !== undefined) this.#current = importSigningKey(pem.reveal());
  }

  /** Whether what was read belongs together: of a first key made just now, the bundle may not have been read yet. */
  get #isWhole(): boolean {
    const signing = this.inState("signing")[0];
    return signing !== undefined && signing.kid === this.#current?.kid && this.#bundles.length > 0;
  }

  /** The one key that signs now. */
  get current(): SigningKey {
    if (this.#current === undefined) throw new TypeError("the keys are not open");
    return this.#current;
  }

  /** The newest bundle. */
  get bundle(): StoredKeyBundle {
    const newest = this.#bundles.at(-1);
    if (newest === undefined) throw new TypeError("the keys are not open");
    return newest;
  }

  /** Every bundle there ever was, the oldest first. */
  get bundles(): readonly StoredKeyBundle[] {
    return this.#bundles;
  }

  /** Every key that was ever this installation's. */
  get archive(): KeyArchive {
    return this.#archive;
  }

  get records(): readonly SigningKeyRecord[] {
    return this.#records;
  }

  inState(...states: readonly SigningKeyState[]): readonly SigningKeyRecord[] {
    return this.#records.filter(({ state }) => states.includes(state));
  }

  /** Throws `signing-key/unknown`. */
  record(kid: string): SigningKeyRecord {
    const record = this.#records.find((candidate) => candidate.kid === kid);
    if (record === undefined) throw new SpaceError("signing-key/unknown", { kid });
    return record;
  }

  /**
   * A new key, held by a new bundle; it signs nothing yet. The private half is durable before anybody hears of it.
   * Throws `root-key/absent`, `signing-key/limit` or `store/failed`.
   */
  async announce(reason: KeyChangeReason): Promise<SigningKeyRecord> {
    const bundled = this.inState("announced", "signing", "retiring");
    if (bundled.length >= bundledKeysLimit)
      throw new SpaceError("signing-key/limit", { limit: bundledKeysLimit });
    const key = newSigningKey();
    await this.#parts.vault.write(key.kid, new Secret(exportSigningKey(key)));
    const publicKey = publicKeyText(key.publicKey);
    try {
      await this.#change(
        [{ kind: "announce", kid: key.kid, publicKey }],
        [...bundled, { kid: key.kid, publicKey }],
        reason,
      );
    } catch (error) {
      await this.#parts.vault.destroy(key.kid); // no bundle holds it
      throw error;
    }
    return this.record(key.kid);
  }

  /** The announced key signs from now on; the one before retires, and its private half is destroyed. */
  async promote(kid: string, reason: KeyChangeReason): Promise<void> {
    const before = this.inState("signing");
    const pem = await this.#parts.vault.read(kid);
    if (pem === undefined) throw new SpaceError("signing-key/unknown", { kid });
    // In this order, so that nothing is signed by the old key after the moment from which its end is counted.
    this.#current = importSigningKey(pem.reveal());
    await this.#change([{ kind: "promote", kid }], undefined, reason);
    for (const old of before) await this.#parts.vault.destroy(old.kid);
  }

  /** A new bundle without the key, which signs no more. Throws `root-key/absent` or `signing-key/state`. */
  async end(kid: string, as: "removed" | "revoked", reason: KeyChangeReason): Promise<void> {
    const { state } = this.record(kid);
    if (state !== "retiring" && !(state === "announced" && as === "revoked"))
      throw new SpaceError("signing-key/state", { kid, state });
    const bundled = this.inState("announced", "signing", "retiring").filter((other) => other.kid !== kid);
    await this.#change([{ kind: "end", kid, as }], bundled, reason);
    await this.#parts.vault.destroy(kid);
  }

  /** Remembers that somebody wants this key's end, however long it takes to get there. */
  async askRevocation(kid: string): Promise<void> {
    await this.#change([{ kind: "ask-revocation", kid }], undefined, "asked");
  }

  async #begin(): Promise<void> {
    for (const { kid } of this.inState("announced")) {
      // Another replica's, which is at the same: whoever is quicker, it is the one key. Else nothing can sign with it.
      if ((await this.#parts.vault.read(kid)) !== undefined) return this.promote(kid, "first start");
      await this.end(kid, "revoked", "lost");
    }
    const { kid } = await this.announce("first start");
    await this.promote(kid, "first start");
  }

  async #load(): Promise<void> {
    const { store } = this.#parts;
    const { bundles, records } = await readTogether(store);
    this.#records = records;
    if (bundles.length === this.#bundles.length) return;
    this.#bundles = bundles;
    this.#archive = KeyArchive.fromBundles(
      this.#bundles.map(({ token }) => token),
      this.#root,
    );
  }

  async #change(
    changes: readonly SigningKeyChange[],
    bundled: readonly { readonly kid: string; readonly publicKey: string }[] | undefined,
    reason: KeyChangeReason,
  ): Promise<void> {
    const { store, clock, audit } = this.#parts;
    const onVersion = this.#bundles.at(-1)?.version ?? 0;
    const bundle = bundled === undefined ? null : await this.#sign(onVersion + 1, bundled);
    const isDone = await store.change({ onVersion, bundle, changes, atMs: clock.wallMs() });
    await this.#load();
    if (!isDone) throw new SpaceError("store/failed", { step: "signing keys" });
    for (const { kind, kid } of changes) {
      const { state } = this.record(kid);
      audit.record("signing-key/changed", { kid, change: kind, state, bundle: this.bundle.version, reason });
    }
  }

  async #sign(
    version: number,
    bundled: readonly { readonly kid: string; readonly publicKey: string }[],
  ): Promise<StoredKeyBundle> {
    const { root, clock } = this.#parts;
    const issuedAtSeconds = Math.floor(clock.wallMs() / 1000);
    const keys = bundled.map(({ kid, publicKey }) => ({ kid, publicKey }));
    const token = await root.use((pem) =>
      signKeyBundle(importSigningKey(pem.reveal()), { version, keys, issuedAtSeconds }),
    );
    KeyArchive.fromBundles([token], this.#root); // the root that is here is the one that receivers have pinned
    return { version, token };
  }
}

/**
 * Bundles and keys that belong together, whatever another replica writes between the two reads: the bundles come first, so
 * that a change is made on a version which is too old at worst, and both are read anew where a key knows of a later one.
 */
async function readTogether(store: SigningKeyStore): Promise<{
  readonly bundles: readonly StoredKeyBundle[];
  readonly records: readonly SigningKeyRecord[];
}> {
  for (let looks = 0; looks < openingLooks; looks += 1) {
    const bundles = await store.bundles();
    const records = await store.all();
    const named = records.map(({ announcedIn, endedIn }) => Math.max(announcedIn, endedIn ?? 0));
    if (Math.max(0, ...named) <= (bundles.at(-1)?.version ?? 0)) return { bundles, records };
  }
  throw new SpaceError("store/failed", { step: "signing keys" });
}
