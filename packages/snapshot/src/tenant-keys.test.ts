// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { inspect } from "node:util";
import { SpaceError } from "@space/model";
import { MemoryByteStore } from "./memory-byte-store.ts";
import { MemoryKeyWrapping } from "./memory-key-wrapping.ts";
import { code, seeded, tenantKey } from "./tenant.fixture.ts";
import { TenantKeys } from "./tenant-keys.ts";

const [a, b] = [tenantKey("a").tenantId, tenantKey("b").tenantId];

let store: MemoryByteStore;
let wrapping: MemoryKeyWrapping;
let keys: TenantKeys;
beforeEach(() => {
  store = new MemoryByteStore();
  wrapping = new MemoryKeyWrapping();
  keys = open("keys");
});

function open(seed: string): TenantKeys {
  return new TenantKeys({ store, wrapping, random: seeded(seed) });
}

test("a tenant has one key from its first use on, and no other tenant has it", async () => {
  const [first, again, other] = [
    await keys.current(a),
    await open("later").current(a),
    await keys.current(b),
  ];
  assert.deepEqual(again.secret.reveal(), first.secret.reveal());
  assert.equal(again.keyId, first.keyId);
  assert.notDeepEqual(other.secret.reveal(), first.secret.reveal());
  assert.equal(first.secret.reveal().length, 32);
  assert.equal(inspect(first).includes("[secret]"), true);
});

test("many first uses at once make one key; those of two processes may make two, and both open", async () => {
  const found = await Promise.all(Array.from({ length: 5 }, () => keys.current(a)));
  assert.equal(new Set(found.map(({ keyId }) => keyId)).size, 1);
  const [one, two] = await Promise.all([open("one").current(b), open("two").current(b)]);
  for (const { keyId, secret } of [one, two])
    assert.deepEqual((await keys.find(b, keyId)).secret.reveal(), secret.reveal());
});

test("after a rotation the new version seals and the old ones open", async () => {
  const first = await keys.current(a);
  const second = await keys.rotate(a);
  assert.equal((await keys.current(a)).keyId, second.keyId);
  assert.deepEqual((await keys.find(a, first.keyId)).secret.reveal(), first.secret.reveal());
  assert.deepEqual(await keys.versions(a), [second.keyId, first.keyId]);
  for (let version = 3; version <= 12; version += 1) await keys.rotate(a);
  assert.equal((await keys.versions(a)).at(-1), first.keyId);
});

test("wrapping anew changes no key, and makes the older wrapping keys needless", async () => {
  const before = [await keys.current(a), await keys.rotate(a), await keys.current(b)];
  wrapping.newest = 2;
  const late = await keys.rotate(b);
  assert.deepEqual(await keys.rewrap(), { rewrapped: 3, kept: 1 });
  wrapping.oldest = 2;
  for (const { tenantId, keyId, secret } of [...before, late])
    assert.deepEqual((await keys.find(tenantId, keyId)).secret.reveal(), secret.reveal());
  assert.deepEqual(await keys.rewrap(), { rewrapped: 0, kept: 4 });
});

test("wrapping anew that breaks off leaves every key, and goes on when it is repeated", async () => {
  const before = [await keys.current(a), await keys.rotate(a), await keys.rotate(a)];
  wrapping.newest = 2;
  let puts = 0;
  store.beforePut = () => {
    puts += 1;
    if (puts === 2) throw new SpaceError("store/failed", { step: "put" });
  };
  await assert.rejects(keys.rewrap(), code("store/failed"));
  for (const { keyId, secret } of before)
    assert.deepEqual((await keys.find(a, keyId)).secret.reveal(), secret.reveal());
  assert.deepEqual(await keys.rewrap(), { rewrapped: 2, kept: 1 });
});

test("a key that was put in another's place, or under another tenant, does not open", async () => {
  const [first, second] = [await keys.current(a), await keys.rotate(a)];
  const foreign = await keys.current(b);
  const placeOf = (keyId: string): string =>
    [...store.held.keys()].find((place) => place.endsWith(keyId)) ?? assert.fail("it is stored");
  const held = store.held.get(placeOf(first.keyId)) ?? assert.fail("it is stored");
  store.held.set(placeOf(second.keyId), held);
  await assert.rejects(keys.current(a), code("key-wrapping/refused"));
  store.held.set(placeOf(foreign.keyId), held);
  await assert.rejects(keys.current(b), code("key-wrapping/refused"));
});

test("a version that is gone, or whose wrapping key is, has its own error", async () => {
  const first = await keys.current(a);
  await assert.rejects(keys.find(b, first.keyId), code("tenant-key/missing"));
  wrapping.newest = 2;
  wrapping.oldest = 2;
  await assert.rejects(keys.current(a), code("key-wrapping/unknown"));
  await assert.rejects(keys.rewrap(), code("key-wrapping/unknown"));
  await keys.destroy(a);
  await assert.rejects(keys.find(a, first.keyId), code("tenant-key/missing"));
  assert.equal(store.held.size, 0);
});

test("a store that cannot answer makes no second key", async () => {
  await keys.current(a);
  const { size } = store.held;
  // biome-ignore lint/correctness/useYield: it fails before there is anything to give
  store.list = async function* () {
    throw new SpaceError("store/failed", { step: "list" });
  };
  await assert.rejects(keys.current(a), code("store/failed"));
  assert.equal(store.held.size, size);
});
