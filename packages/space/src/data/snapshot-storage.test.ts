// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { parseTenantId } from "@space/model";
import { explain } from "../failure.ts";
import { openSnapshotPlace } from "./snapshot-place.ts";
import { keyEncryptionPath, openSnapshotStorage } from "./snapshot-storage.ts";

const tenantId = parseTenantId(`ten_${"t".repeat(16)}`);
let data = "";
const folders = (root = data) => ({ control: join(root, "control"), objects: join(root, "objects") });
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "snapshot-storage-"));
  mkdirSync(join(data, "control"));
});
afterEach(() => rmSync(data, { recursive: true, force: true }));

const failure = (opening: Promise<unknown>): Promise<string> => opening.then(() => "none", explain);

test("at first in the data directory, with a key-encryption key that its owner alone may read", async () => {
  const { place, tenantKeys } = await openSnapshotStorage(folders());
  assert.deepEqual(place, { kind: "directory", path: join(data, "objects") });
  const keys = keyEncryptionPath(join(data, "control"));
  assert.equal(statSync(keys).mode & 0o777, 0o600);
  const { keyId } = await tenantKeys.current(tenantId);
  const moved = `${data}-moved`;
  renameSync(data, moved);
  data = moved;
  const again = await openSnapshotStorage(folders());
  assert.deepEqual(
    again.place,
    { kind: "directory", path: join(moved, "objects") },
    "the data directory may be moved",
  );
  await again.tenantKeys.find(tenantId, keyId);
  chmodSync(keyEncryptionPath(join(data, "control")), 0o640);
  await assert.rejects(openSnapshotStorage(folders()), { code: "host/unfit" });
});

test("the place that was chosen at first is remembered, and another one is refused", async () => {
  const chosen = { kind: "directory", path: join(data, "elsewhere") } as const;
  await openSnapshotStorage(folders(), chosen);
  assert.deepEqual((await openSnapshotStorage(folders())).place, chosen);
  const other = { kind: "directory", path: join(data, "another") } as const;
  assert.match(
    await failure(openSnapshotStorage(folders(), other)),
    /snapshots of this installation are in .*elsewhere/,
  );
  assert.deepEqual((await openSnapshotStorage(folders(), chosen)).place, chosen);
});

test("a lost key-encryption key is not replaced by a new one", async () => {
  await openSnapshotStorage(folders());
  rmSync(keyEncryptionPath(join(data, "control")));
  assert.match(
    await failure(openSnapshotStorage(folders())),
    /is not there; put the file of key-encryption keys back/,
  );
});

test("snapshots of a version before they were sealed are refused with what to do", async () => {
  mkdirSync(join(data, "objects", "a7"), { recursive: true });
  assert.match(
    await failure(openSnapshotStorage(folders())),
    /before they were sealed.*resume what is needed with the version/,
  );
});

test("a bucket's key pair is read from a file that its owner alone may read, and is in no other", async () => {
  const credentials = join(data, "s3");
  const place = {
    kind: "s3",
    endpoint: "http://127.0.0.1:9",
    bucket: "snapshots",
    region: "us-east-1",
    credentials,
  } as const;
  assert.match(await failure(openSnapshotPlace(place)), /is not there; write a file of mode 0600/);
  writeFileSync(credentials, "AWS_ACCESS_KEY_ID=id\n", { mode: 0o600 });
  assert.match(await failure(openSnapshotPlace(place)), /holds no key pair/);
  writeFileSync(credentials, "AWS_ACCESS_KEY_ID=id\nAWS_SECRET_ACCESS_KEY=very secret\n");
  chmodSync(credentials, 0o644);
  assert.match(await failure(openSnapshotPlace(place)), /is open to others/);
  chmodSync(credentials, 0o600);
  const text = await failure(openSnapshotStorage(folders(), place));
  assert.match(text, /^store\/failed/);
  assert.doesNotMatch(text, /secret/);
  writeFileSync(join(data, "control/snapshots.json"), JSON.stringify(place));
  assert.doesNotMatch(readFileSync(join(data, "control/snapshots.json"), "utf8"), /very secret/);
});
