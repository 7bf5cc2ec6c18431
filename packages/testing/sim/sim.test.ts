// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { neverLanded } from "./faults.ts";
import type { RunReport } from "./run-report.ts";

/** What `./space sim --json` says with these arguments. */
async function simulate(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly text: string }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  const code = await new Promise<number>((resolve) => child.once("close", (status) => resolve(status ?? 1)));
  return { code, text: Buffer.concat(output).toString("utf8") };
}

test("R-2, R-4: the seven statements hold in whole worlds whose faults have landed", {
  timeout: 600_000,
}, async () => {
  const { code, text } = await simulate("--seed", "test", "--executions", "5000", "--shards", "2", "--json");
  const report: RunReport = JSON.parse(text);
  assert.deepEqual(report.found, []);
  assert.equal(code, 0);
  assert.ok(report.executions >= 5000);
  assert.ok(report.realSignatures.rate >= 0.01);
  assert.deepEqual(neverLanded(report.faultsLanded), [], "faults that never landed");
});

test("a run that strikes nobody is told from one in which every fault landed", async () => {
  const { text } = await simulate("--world", "calm/1", "--calm", "--json");
  const { faultsLanded }: RunReport = JSON.parse(text);
  const spared = neverLanded(faultsLanded);
  assert.ok(spared.includes("crash-worker-host") && spared.includes("object-damage"));
  assert.ok(!spared.includes("reordering")); // the network does that by itself
});

test("the same seed makes the same world", async () => {
  const runs = await Promise.all([1, 2].map(() => simulate("--world", "test/1", "--json")));
  const [one, other] = runs.map(({ text }) => JSON.parse(text) as RunReport); // cast: what the program prints
  assert.ok(one !== undefined && other !== undefined);
  assert.ok(one.executions > 0);
  assert.deepEqual([other.counts, other.faultsLanded], [one.counts, one.faultsLanded]);
});

test("every mutant is caught, and what is not broken passes", { timeout: 900_000 }, async () => {
  const { code, text } = await simulate("--mutants", "--json");
  const { missed, caught } = JSON.parse(text);
  const names = caught.filter(({ by }: { readonly by: string | null }) => by === null);
  assert.deepEqual([missed, names], [0, []]);
  assert.equal(code, 0);
});
