// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { fromJson, toJson } from "@bufbuild/protobuf";
import type { GuestEntry } from "@space/spaced-guest";
import { EntryInfoSchema } from "@space/wire/envd";
import { entryInfo, permissionText } from "./entry-info.ts";
import { parseUsers } from "./guest-users.ts";

const table = parseUsers("user:x:1000:1000::/home/user:/bin/sh", "users:x:1000:");
const entry: GuestEntry = {
  type: "file",
  isSymlink: false,
  mode: 0o644,
  uid: 1000,
  gid: 1000,
  sizeBytes: 9_007_199_254,
  modifiedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678) + 0.9,
  path: "/home/user/file.txt",
  symlinkTarget: "",
};

it("is protobuf's own JSON of the message", () => {
  const entries: GuestEntry[] = [
    entry,
    { ...entry, type: "directory", mode: 0, sizeBytes: 0, path: "/", modifiedAtMs: 0, uid: 5, gid: 6 },
    { ...entry, isSymlink: true, symlinkTarget: "/target" },
    { ...entry, type: "other", modifiedAtMs: -1 },
    { ...entry, modifiedAtMs: Number.MAX_SAFE_INTEGER },
  ];
  for (const each of entries) {
    const json = entryInfo(each, table);
    assert.deepEqual(toJson(EntryInfoSchema, fromJson(EntryInfoSchema, json)), json);
  }
});

it("names owners, or their numbers when the guest has no name for them", () => {
  const { owner, group } = entryInfo(entry, table);
  assert.deepEqual([owner, group], ["user", "users"]);
  const stranger = entryInfo({ ...entry, uid: 5, gid: 6 }, table);
  assert.deepEqual([stranger["owner"], stranger["group"]], ["5", "6"]);
});

it("keeps microseconds, and leaves out a time that cannot be said", () => {
  assert.equal(entryInfo(entry, table)["modifiedTime"], "2026-01-02T03:04:05.678900Z");
  assert.equal(entryInfo({ ...entry, modifiedAtMs: 1e18 }, table)["modifiedTime"], undefined);
});

it("prints permissions as E2B's agent does", () => {
  const text = (changes: Partial<GuestEntry>) => permissionText({ ...entry, ...changes });
  assert.equal(text({}), "-rw-r--r--");
  assert.equal(text({ type: "directory", mode: 0o755 }), "drwxr-xr-x");
  assert.equal(text({ type: "directory", mode: 0o1777 }), "dtrwxrwxrwx");
  assert.equal(text({ mode: 0o4755 }), "urwxr-xr-x");
  assert.equal(text({ isSymlink: true }), "Lrwxrwxrwx");
});
