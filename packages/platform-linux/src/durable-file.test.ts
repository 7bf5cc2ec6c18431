// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { isSpaceError } from "@space/model";
import { type ReplaceOptions, replaceFile, replaceFileNow } from "./durable-file.ts";

type Replace = (path: string, contents: Uint8Array | string, options?: ReplaceOptions) => Promise<void>;

const ways: Readonly<Record<string, Replace>> = {
  "replacing a file": replaceFile,
  "replacing a file within the turn": async (...args) => replaceFileNow(...args),
};

for (const [what, replace] of Object.entries(ways)) {
  describe(what, () => {
    let folder = "";
    let path = "";
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "space-durable-"));
      path = join(folder, "file");
    });
    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    const failed = (error: unknown): boolean =>
      isSpaceError(error, "store/failed") && error.cause instanceof Error;

    it("makes it, and makes it anew, whole, for its owner alone unless more is asked for", async () => {
      await replace(path, "first");
      assert.equal(statSync(path).mode & 0o777, 0o600);
      const inode = statSync(path).ino;
      await replace(path, Buffer.alloc(3_000_000, 7), { mode: 0o644 });
      assert.deepEqual(readFileSync(path), Buffer.alloc(3_000_000, 7));
      assert.equal(statSync(path).mode & 0o777, 0o644);
      assert.notEqual(statSync(path).ino, inode, "who has the old one open keeps it");
      assert.deepEqual(readdirSync(folder), ["file"]);
    });

    it("leaves what was there when it fails, and nothing beside it", async () => {
      await assert.rejects(replace(join(folder, "no", "file"), "new"), failed);
      mkdirSync(join(path, "full"), { recursive: true }); // a folder, which no file replaces
      await assert.rejects(replace(path, "new"), failed);
      assert.deepEqual(readdirSync(folder), ["file"]);
      assert.deepEqual(readdirSync(path), ["full"]);
    });

    it("goes past what a crash left under the temporary name, and writes through no link there", async () => {
      const temporary = join(folder, "file.new");
      writeFileSync(temporary, "half of what was to be", { mode: 0o666 });
      await replace(path, "whole", { temporary });
      assert.deepEqual([readFileSync(path, "utf8"), statSync(path).mode & 0o777], ["whole", 0o600]);
      const victim = join(folder, "victim");
      writeFileSync(victim, "mine");
      symlinkSync(victim, temporary);
      await replace(path, "again", { temporary });
      assert.deepEqual([readFileSync(path, "utf8"), readFileSync(victim, "utf8")], ["again", "mine"]);
      assert.deepEqual(readdirSync(folder).toSorted(), ["file", "victim"]);
    });
  });
}

it("replaces a file from several sides at once: one of them stays, whole", async () => {
  const folder = mkdtempSync(join(tmpdir(), "space-durable-"));
  try {
    const path = join(folder, "file");
    const texts = Array.from({ length: 20 }, (_none, at) => String(at).repeat(50_000));
    await Promise.all(texts.map((text) => replaceFile(path, text)));
    assert.ok(texts.includes(readFileSync(path, "utf8")));
    assert.deepEqual(readdirSync(folder), ["file"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
