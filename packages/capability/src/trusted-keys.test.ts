// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type ErrorCode, isSpaceError, type KeyBundleStore } from "@space/model";
import { newSigningKey } from "./keys.ts";
import { bundle, claimsJson, signPayload } from "./signed.fixture.ts";
import { TrustedKeys } from "./trusted-keys.ts";

const root = newSigningKey();
const [old, next] = [newSigningKey(), newSigningKey()];

/** A store as a disk would keep it. */
class Kept implements KeyBundleStore {
  held: { readonly version: number; readonly token: string } | undefined;
  isFull = false;

  readBundle(): Kept["held"] {
    return this.held;
  }

  writeBundle(version: number, token: string): boolean {
    if (this.isFull) throw new TypeError("the disk is full");
    if ((this.held?.version ?? 0) >= version) return false;
    this.held = { version, token };
    return true;
  }
}

const open = (store: KeyBundleStore): TrustedKeys => new TrustedKeys({ root: root.publicKey, store });
const capability = (key = old): string => signPayload(key, JSON.stringify(claimsJson()));
const refuses = (keys: TrustedKeys, token: string, code: ErrorCode): void => {
  assert.throws(
    () => keys.replace(token),
    (error) => isSpaceError(error, code),
  );
};

it("R-10: trusts nobody before its first bundle", () => {
  const keys = open(new Kept());
  assert.equal(keys.version, 0);
  assert.deepEqual(keys.verify(capability()), { kind: "refused", reason: "key" });
  assert.throws(() => keys.ring, { code: "certificate/refused" });
});

it("R-10: a bundle that leaves a key out revokes it at once, also for what is remembered", () => {
  const keys = open(new Kept());
  assert.equal(keys.replace(bundle(root, 1, [old])), true);
  const token = capability();
  assert.equal(keys.verify(token).kind, "verified");
  assert.equal(keys.verify(token), keys.verify(token), "remembered");
  keys.replace(bundle(root, 2, [old, next]));
  assert.equal(keys.verify(token).kind, "verified");
  keys.replace(bundle(root, 3, [next]));
  assert.deepEqual(keys.verify(token), { kind: "refused", reason: "key" });
  assert.equal(keys.verify(capability(next)).kind, "verified");
});

it("R-10: an older bundle is refused, also after a restart; the held one changes nothing", () => {
  const store = new Kept();
  const keys = open(store);
  const held = bundle(root, 5, [old]);
  keys.replace(held);
  assert.equal(keys.replace(held), false);
  refuses(keys, bundle(root, 4, [old]), "bundle/rollback");
  const again = open(store);
  assert.equal(again.version, 5);
  refuses(again, bundle(root, 4, [old]), "bundle/rollback");
  assert.equal(again.verify(capability()).kind, "verified");
});

it("R-10: a second bundle of the held version is refused: the root said two things", () => {
  const keys = open(new Kept());
  keys.replace(bundle(root, 2, [old]));
  refuses(keys, bundle(root, 2, [next]), "bundle/refused");
  assert.equal(keys.verify(capability(next)).kind, "refused");
});

it("R-10: only what the pinned root signed counts, stored or received", () => {
  const store = new Kept();
  const keys = open(store);
  refuses(keys, bundle(newSigningKey(), 1, [old]), "bundle/refused");
  store.held = { version: 1, token: bundle(newSigningKey(), 1, [old]) };
  assert.throws(() => open(store), { code: "bundle/refused" });
});

it("R-10: a bundle that could not be made durable does not count", () => {
  const store = new Kept();
  const keys = open(store);
  keys.replace(bundle(root, 1, [old]));
  store.isFull = true;
  assert.throws(() => keys.replace(bundle(root, 2, [next])), TypeError);
  assert.equal(keys.version, 1);
  assert.equal(keys.verify(capability()).kind, "verified");
  store.isFull = false;
  store.held = { version: 9, token: bundle(root, 9, [next]) }; // another process was faster
  refuses(keys, bundle(root, 2, [next]), "bundle/rollback");
});
