// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "../failure.ts";
import { parseChaos } from "./chaos.ts";

test("chaos takes minutes, a seed and what to run, and has its own for what is not given", () => {
  const { seconds, seed, substrate, memory, json } = parseChaos([]);
  assert.deepEqual([seconds, substrate, memory, json], [600, "namespace", undefined, false]);
  assert.match(seed, /^[0-9]{1,6}$/);
  const given = parseChaos(["--minutes", "0.5", "--seed", "abc", "--memory", "frozen", "--json"]);
  assert.deepEqual([given.seconds, given.seed, given.memory, given.json], [30, "abc", "frozen", true]);
});

test("chaos refuses what it cannot run", () => {
  for (const args of [
    ["--minutes", "0"],
    ["--minutes", "many"],
    ["--seed", "a b"],
    ["--workers", "1"],
    ["--sandboxes", "0"],
    ["--substrate", "portable"],
    ["--memory", "swap"],
    ["--substrate", "gvisor", "--memory", "criu"],
  ])
    assert.throws(() => parseChaos(args), UsageError, args.join(" "));
});
