// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { explain, UsageError } from "../failure.ts";
import { requireHost } from "../host/host-fitness.ts";
import { ensurePython } from "../host/python.ts";
import { ensureRunsc } from "../host/runsc.ts";
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
  await fetchRunsc();
  const failed: string[] = [];
  if (args.length === 0) {
    for (const check of ["format:check", "lint", "types", "boundaries", "rules:check", "incidents:check"]) {
      if ((await run("npm", ["run", "--silent", check])) !== 0) failed.push(check);
    }
  }
  const counts: Counts[] = [];
  for (const together of args.length > 0 ? [[named(args)]] : everySuite) {
    const results = await runTogether(together);
    for (const [at, { code, count }] of results.entries()) {
      if (code !== 0) failed.push(together[at]?.name ?? "");
      counts.push(count);
    }
  }
  const sum = (field: keyof Counts): number => counts.reduce((total, count) => total + count[field], 0);
  if (failed.length > 0) process.stdout.write(`not as it should be: ${failed.join(", ")}\n`);
  const failures = Math.max(sum("failed"), failed.length);
  process.stdout.write(`${sum("passed")} passed, ${failures} failed, ${sum("skipped")} skipped\n`);
  return failures === 0 ? 0 : 1;
}

/** Once; without it the tests of the driver that needs it are skipped, and say so. */
async function fetchRunsc(): Promise<void> {
  try {
    await ensureRunsc();
  } catch (error) {
    process.stderr.write(`tests of gVisor are skipped: ${explain(error)}\n`);
  }
}

interface Suite {
  readonly name: string;
  readonly flags: readonly string[];
  readonly files: readonly string[];
}

const isolated = ["--test-concurrency=1", "--test-timeout=300000"];

function named(files: readonly string[]): Suite {
  return { name: "tests", flags: isolated, files };
}

const unitTests: Suite = {
  name: "unit tests",
  flags: ["--test-isolation=none", "--test-timeout=60000"],
  files: ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts"],
};
const integrationTests: Suite = {
  name: "integration tests",
  flags: isolated,
  files: ["packages/testing/!(sim|src)/**/*.test.ts"],
};
/** They live in virtual time: it is all the same to them how much of the machine they get. */
const simulations: Suite = {
  name: "simulations",
  flags: ["--test-concurrency=1", "--test-timeout=900000"],
  files: ["packages/testing/sim/**/*.test.ts"],
};
/** One after the other, and those of one list together. */
const everySuite: readonly (readonly Suite[])[] = [[unitTests], [integrationTests, simulations]];

interface SuiteResult {
  readonly code: number;
  readonly count: Counts;
  /** What is still to be shown. */
  readonly output: string;
}

/** The first has the machine and the terminal; the others take what it leaves, and are shown after it. */
async function runTogether([first, ...others]: readonly Suite[]): Promise<readonly SuiteResult[]> {
  const inRear = others.map((suite) => runTests(suite, "in the rear"));
  const results = first === undefined ? [] : [await runTests(first, "in front")];
  for (const underWay of inRear) {
    const result = await underWay;
    process.stdout.write(result.output);
    results.push(result);
  }
  return results;
}

async function runTests({ flags, files }: Suite, place: "in front" | "in the rear"): Promise<SuiteResult> {
  const folder = mkdtempSync(join(tmpdir(), "space-test-"));
  const summary = join(folder, "summary.tap");
  try {
    const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=tap"];
    const args = ["--test", ...flags, ...reporters, `--test-reporter-destination=${summary}`, ...files];
    const { code, output } =
      place === "in front"
        ? { code: await run(process.execPath, args), output: "" }
        : await runQuietly(process.execPath, args);
    const count = readCounts(readFileSync(summary, "utf8"));
    // A runner that found nothing to run has checked nothing.
    return { code: count.passed + count.failed === 0 ? 1 : code, count, output };
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

/** At a lower priority; what it prints is kept. */
async function runQuietly(
  program: string,
  args: readonly string[],
): Promise<{ readonly code: number; readonly output: string }> {
  const child = spawn(program, [...args], { cwd: checkout, stdio: ["ignore", "pipe", "inherit"] });
  if (child.pid !== undefined) setPriority(child.pid, 10);
  const printed: Buffer[] = [];
  child.stdout.on("data", (piece: Buffer) => printed.push(piece));
  const [code] = await Promise.all([exitCode(child), once(child.stdout, "close")]);
  return { code, output: Buffer.concat(printed).toString() };
}
