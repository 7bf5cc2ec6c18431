// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UsageError } from "../failure.ts";
import { requireHost } from "../host/host-fitness.ts";
import { ensurePython } from "../host/python.ts";
import { checkout } from "../product.ts";
import { exitCode } from "./exit-code.ts";

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** `./space test [FILE...]`: the static checks, then every test; or only the tests in the files named. */
export async function test(args: readonly string[]): Promise<number> {
  if (args.some((arg) => arg.startsWith("-"))) throw new UsageError("usage: ./space test [FILE...]");
  await requireHost("the tests start real sandboxes");
  await ensurePython("guests in the tests run Python programs");
  const failed: string[] = [];
  if (args.length === 0) {
    for (const check of ["format:check", "lint", "types", "boundaries", "rules:check", "incidents:check"]) {
      if ((await run("npm", ["run", "--silent", check])) !== 0) failed.push(check);
    }
  }
  const counts: Counts[] = [];
  for (const [name, flags, files] of suites(args)) {
    const { code, count } = await runTests(flags, files);
    if (code !== 0) failed.push(name);
    counts.push(count);
  }
  const sum = (field: keyof Counts): number => counts.reduce((total, count) => total + count[field], 0);
  if (failed.length > 0) process.stdout.write(`not as it should be: ${failed.join(", ")}\n`);
  const failures = Math.max(sum("failed"), failed.length);
  process.stdout.write(`${sum("passed")} passed, ${failures} failed, ${sum("skipped")} skipped\n`);
  return failures === 0 ? 0 : 1;
}

type Suite = readonly [name: string, flags: readonly string[], files: readonly string[]];

function suites(named: readonly string[]): readonly Suite[] {
  const isolated = ["--test-concurrency=1", "--test-timeout=300000"];
  if (named.length > 0) return [["tests", isolated, named]];
  return [
    [
      "unit tests",
      ["--test-isolation=none", "--test-timeout=60000"],
      ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts"],
    ],
    ["integration tests", isolated, ["packages/testing/**/*.test.ts"]],
  ];
}

async function runTests(
  flags: readonly string[],
  files: readonly string[],
): Promise<{ code: number; count: Counts }> {
  const folder = mkdtempSync(join(tmpdir(), "space-test-"));
  const summary = join(folder, "summary.tap");
  try {
    const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=tap"];
    const code = await run(process.execPath, [
      "--test",
      ...flags,
      ...reporters,
      `--test-reporter-destination=${summary}`,
      ...files,
    ]);
    const count = readCounts(readFileSync(summary, "utf8"));
    // A runner that found nothing to run has checked nothing.
    return { code: count.passed + count.failed === 0 ? 1 : code, count };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The closing comment lines of a TAP report. */
function readCounts(tap: string): Counts {
  const value = (word: string): number => Number(new RegExp(`^# ${word} ([0-9]+)$`, "m").exec(tap)?.[1] ?? 0);
  return { passed: value("pass"), failed: value("fail") + value("cancelled"), skipped: value("skipped") };
}

function run(program: string, args: readonly string[]): Promise<number> {
  return exitCode(spawn(program, [...args], { cwd: checkout, stdio: ["ignore", "inherit", "inherit"] }));
}
