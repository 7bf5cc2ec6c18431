// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Runs every fast check and reports all that failed: `npm run check`, or `node scripts/check.ts [tree]`. The linters use both cores by themselves, so
// they run one after the other beside the unit tests, which use one.

import { spawn } from "node:child_process";
import { resolve } from "node:path";

interface Outcome {
  readonly name: string;
  readonly passed: boolean;
}

const lanes = [
  ["types", "format:check", "lint:structure", "lint:types", "boundaries", "rules:check", "incidents:check"],
  ["test:unit"],
];

const root = process.argv[2] ?? resolve(import.meta.dirname, "..");
const write = (text: string): void => {
  process.stdout.write(text);
};

/** Runs one npm script; what it printed is shown whole when it ends, so that two lanes do not mix. */
async function run(name: string): Promise<Outcome> {
  const startedAtMs = performance.now();
  const child = spawn("npm", ["run", "--silent", name], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
  const passed = await new Promise<boolean>((settle, fail) => {
    child.once("error", fail);
    child.once("close", (code) => {
      settle(code === 0);
    });
  });
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  write(`\n== ${name}: ${passed ? "ok" : "FAILED"}, ${seconds} s\n${Buffer.concat(output).toString("utf8")}`);
  return { name, passed };
}

async function runLane(names: readonly string[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const name of names) outcomes.push(await run(name));
  return outcomes;
}

const outcomes = (await Promise.all(lanes.map(runLane))).flat();
const failed = outcomes.filter(({ passed }) => !passed).map(({ name }) => name);
write(failed.length === 0 ? "\ncheck: all passed\n" : `\ncheck: failed: ${failed.join(", ")}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
