// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { isSpaceError, Secret } from "@space/model";
import { systemRandom } from "../host/system-random.ts";
import { KeyEncryptionFile } from "./key-encryption-file.ts";

function place(context: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), "kek-"));
  context.after(() => rmSync(root, { recursive: true, force: true }));
  return join(root, "key-encryption-keys");
}

const code = (expected: string) => (error: unknown) => isSpaceError(error) && error.code === expected;
const secret = new Secret(new Uint8Array(32).fill(7));

test("is made once, for its owner alone, and opens what it wrapped, after a restart too", async (context) => {
  const path = place(context);
  const wrapped = await KeyEncryptionFile.open(path, systemRandom).wrap(secret, "of a");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const again = KeyEncryptionFile.open(path, systemRandom);
  assert.deepEqual((await again.unwrap(wrapped, "of a")).reveal(), secret.reveal());
  assert.equal(Buffer.from(wrapped).includes(Buffer.alloc(8, 7)), false);
  assert.equal(
    inspect(again, { depth: 9, showHidden: true }).includes(readFileSync(path, "utf8").slice(33, 60)),
    false,
  );
});

test("refuses a file that others may read, that is cut off, or that is gone", async (context) => {
  const path = place(context);
  const file = KeyEncryptionFile.open(path, systemRandom);
  chmodSync(path, 0o640);
  assert.throws(() => KeyEncryptionFile.open(path, systemRandom), code("host/unfit"));
  await assert.rejects(file.wrap(secret, "of a"), code("host/unfit"));
  chmodSync(path, 0o600);
  const whole = readFileSync(path);
  writeFileSync(path, whole.subarray(0, 50));
  await assert.rejects(file.wrap(secret, "of a"), code("host/unfit"));
  writeFileSync(path, "");
  await assert.rejects(file.wrap(secret, "of a"), code("host/unfit"));
  rmSync(path);
  await assert.rejects(file.wrap(secret, "of a"), code("host/unfit"));
});

test("opens nothing for another context, and nothing that was altered anywhere", async (context) => {
  const file = KeyEncryptionFile.open(place(context), systemRandom);
  const wrapped = await file.wrap(secret, "of a");
  await assert.rejects(file.unwrap(wrapped, "of b"), code("key-wrapping/refused"));
  for (let at = 0; at < wrapped.length; at += 1) {
    const altered = Uint8Array.from(wrapped);
    altered[at] = (altered[at] ?? 0) ^ 1;
    const expected = at >= 1 && at < 17 ? "key-wrapping/unknown" : "key-wrapping/refused";
    await assert.rejects(file.unwrap(altered, "of a"), code(expected));
  }
  for (let length = 0; length < wrapped.length; length += 1)
    await assert.rejects(file.unwrap(wrapped.subarray(0, length), "of a"), code("key-wrapping/refused"));
});

test("wraps under the newest key, and opens under older ones until they are forgotten", async (context) => {
  const file = KeyEncryptionFile.open(place(context), systemRandom);
  const before = await file.wrap(secret, "of a");
  const id = file.rotate();
  const after = await file.wrap(secret, "of a");
  assert.deepEqual([await file.isNewest(before), await file.isNewest(after)], [false, true]);
  assert.deepEqual((await file.unwrap(before, "of a")).reveal(), secret.reveal());
  assert.equal(file.ids.length, 2);
  file.forgetBefore("0".repeat(32));
  assert.equal(file.ids.length, 2, "a key that is not there leaves all");
  file.forgetBefore(id);
  assert.deepEqual(file.ids, [id]);
  await assert.rejects(file.unwrap(before, "of a"), code("key-wrapping/unknown"));
  await assert.rejects(file.isNewest(before), code("key-wrapping/unknown"));
  assert.deepEqual((await file.unwrap(after, "of a")).reveal(), secret.reveal());
});
