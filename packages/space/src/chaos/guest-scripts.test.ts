// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseSeen, pathOf, readScript, saysWritten, writeScript } from "./guest-scripts.ts";
import { contentOf, Ledger } from "./ledger.ts";

const home = mkdtempSync(join(tmpdir(), "space-chaos-"));
after(() => rmSync(home, { recursive: true, force: true }));

function run(script: string): string {
  return execFileSync("/bin/sh", ["-c", script.replaceAll("/home/user", home)], { encoding: "utf8" });
}

test("the programs write what the ledger expects, keep as much, and show it whole", () => {
  const ledger = new Ledger("run", "sbx_a");
  for (let at = 0; at < 23; at += 1) {
    const writing = ledger.begin(3);
    assert.ok(saysWritten(run(writeScript(writing))));
    ledger.acknowledge(writing);
  }
  const seen = parseSeen(run(readScript));
  assert.equal(seen?.head, 23);
  assert.deepEqual(ledger.check(seen), []);
  const path = pathOf(21).replace("/home/user", home);
  assert.deepEqual(readFileSync(path), contentOf(ledger.written(21) ?? assert.fail()));
  writeFileSync(path, "something else");
  const harmed = parseSeen(run(readScript)) ?? assert.fail();
  assert.deepEqual(
    ledger.check(harmed).map(({ kind }) => kind),
    ["torn file"],
  );
});

test("an answer that is cut is none", () => {
  const whole = `head 1\nfile 1 2 ${"0".repeat(64)} text\nend\n`;
  assert.equal(parseSeen(whole)?.files.length, 1);
  for (const cut of [whole.slice(0, -1), whole.slice(0, -5), whole.slice(8), "", "head 1\nwhat\nend\n"])
    assert.equal(parseSeen(cut), undefined, cut);
});
