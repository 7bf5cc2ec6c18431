// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const programs = { sim: "../sim/main.ts", fuzz: "fuzz/fuzz-main.ts" } as const;

function refused(program: keyof typeof programs, ...args: readonly string[]): string {
  const file = join(import.meta.dirname, programs[program]);
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], { encoding: "utf8" });
  assert.deepEqual([status, stdout], [1, ""], stderr);
  assert.match(stderr, /^space: [^\n]+\n$/); // one line, and no stack
  return stderr;
}

test("a program names the option that it does not know, in one line", () => {
  assert.match(refused("sim", "--sede", "1"), /--sede/);
  assert.match(refused("fuzz", "capability", "--secnods", "1"), /--secnods/);
});

test("a program names the option whose value it cannot use", () => {
  assert.match(refused("sim", "--executions", "many"), /--executions/);
  assert.match(refused("sim", "--shards", "0"), /--shards/);
  assert.match(refused("sim", "--mutant", "none"), /--mutants/);
  assert.match(refused("fuzz", "capability", "--seconds", "0"), /--seconds/);
  assert.match(refused("fuzz", "nothing"), /capability/);
});
