// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { type AuditSink, parseTenantId, SpaceError, type TenantKey, type TenantKeyId } from "@space/model";
import { MemoryByteStore, TenantKeys } from "@space/snapshot";
import { KeyEncryptionFile } from "../data/key-encryption-file.ts";
import { systemRandom } from "../host/system-random.ts";
import { SnapshotKeys } from "./snapshot-keys.ts";

const [one, two] = [parseTenantId(`ten_${"a".repeat(16)}`), parseTenantId(`ten_${"b".repeat(16)}`)];

let folder = "";
let store: MemoryByteStore;
let wrapping: KeyEncryptionFile;
let tenantKeys: TenantKeys;
let said: (readonly [string, unknown])[];
let keys: SnapshotKeys;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "snapshot-keys-"));
  store = new MemoryByteStore();
  wrapping = KeyEncryptionFile.open(join(folder, "keys"), systemRandom);
  tenantKeys = new TenantKeys({ store, wrapping, random: systemRandom });
  said = [];
  const audit: AuditSink = { record: (name, fields) => said.push([name, fields]) };
  keys = new SnapshotKeys({ tenantKeys, wrapping, audit });
});
afterEach(() => rmSync(folder, { recursive: true }));

const isSame = (a: TenantKey, b: TenantKey): boolean =>
  Buffer.from(a.secret.reveal()).equals(b.secret.reveal());

test("a tenant's key is rotated at an operator's word, and what there was stays", async () => {
  const first = await tenantKeys.current(one);
  const keyId = await keys.rotateTenant(one);
  assert.equal((await tenantKeys.current(one)).keyId, keyId);
  assert.ok(isSame(await tenantKeys.find(one, first.keyId), first));
  const { tenants, wrappingKeys } = await keys.view();
  assert.deepEqual(tenants, [{ tenantId: one, keys: [keyId, first.keyId] }]);
  assert.deepEqual(wrappingKeys, wrapping.ids);
  assert.deepEqual(said, [["tenant-key/rotated", { tenantId: one, keyId }]]);
});

test("a tenant without a key gets none by a wrong word", async () => {
  await assert.rejects(keys.rotateTenant(two), { code: "input/invalid" });
  assert.deepEqual([...store.held.keys()], []);
});

test("everything is wrapped under a new key, and the old one is gone", async () => {
  const kept = [await tenantKeys.current(one), await tenantKeys.rotate(one), await tenantKeys.current(two)];
  const before = wrapping.ids;
  assert.deepEqual(await keys.rewrap(), { rewrapped: 3, kept: 0 });
  assert.equal(wrapping.ids.length, 1);
  assert.ok(!before.includes(wrapping.ids[0] ?? ""));
  for (const key of kept) assert.ok(isSame(await tenantKeys.find(key.tenantId, key.keyId), key));
  const rotated = { wrappingKey: wrapping.ids[0], rewrapped: 3, kept: 0 };
  assert.deepEqual(said, [["key-encryption/rotated", rotated]]);
});

test("one that broke off loses nothing, and is done by the next", async () => {
  const ids: TenantKeyId[] = [];
  for (let at = 0; at < 4; at += 1) ids.push((await tenantKeys.rotate(one)).keyId);
  let puts = 0;
  store.beforePut = () => {
    puts += 1;
    if (puts > 2) throw new SpaceError("store/failed", { step: "put" });
  };
  await assert.rejects(keys.rewrap(), { code: "store/failed" });
  store.beforePut = () => undefined;
  assert.equal(wrapping.ids.length, 2);
  for (const keyId of ids) await tenantKeys.find(one, keyId);
  assert.deepEqual(await keys.rewrap(), { rewrapped: 4, kept: 0 });
  assert.equal(wrapping.ids.length, 1);
  for (const keyId of ids) await tenantKeys.find(one, keyId);
});

test("a key that is made while all are wrapped anew is lost in no order of the two", async () => {
  const { put } = store;
  for (const stopAt of [1, 2]) {
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    let puts = 0;
    store.put = async (key, bytes) => {
      puts += 1;
      if (puts === 1 && stopAt === 1) {
        reached.resolve();
        await gate.promise; // it was wrapped under the key that is replaced meanwhile
      }
      await put.call(store, key, bytes);
      if (puts === 1 && stopAt === 2) {
        reached.resolve();
        await gate.promise;
      }
    };
    const making = tenantKeys.rotate(two);
    await reached.promise;
    await keys.rewrap();
    gate.resolve();
    const made = await making;
    assert.ok(isSame(await tenantKeys.find(two, made.keyId), made), String(stopAt));
    assert.equal(wrapping.ids.length, 1);
  }
});

test("two who wrap anew at once lose nothing", async () => {
  const { keyId } = await tenantKeys.current(one);
  await Promise.all([keys.rewrap(), keys.rewrap(), keys.rewrap()]);
  await tenantKeys.find(one, keyId);
  assert.equal(wrapping.ids.length, 1);
});
