// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { checkout } from "../product.ts";
import { exitCode } from "./exit-code.ts";

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A part of `./space test`. */
export interface Part {
  readonly name: string;
  readonly run: (place: Place) => Promise<Ran>;
}

/** No part takes this long: one test that waits for ever would take the report of all others with it. */
const limitMs = 25 * 60_000;

/** Those of a list run one after the other, the two lists side by side. The rear is shown after the front. */
export interface Together {
  readonly front: readonly Part[];
  readonly rear: readonly Part[];
}

type Place = "in front" | "in the rear";

interface Ran {
  readonly code: number;
  readonly count: Counts;
  /** What is still to be shown. */
  readonly output: string;
}

export interface PartResult extends Ran {
  readonly name: string;
  readonly seconds: number;
}

/** Runs the parts to their end, whatever comes of each. */
export async function runTogether({ front, rear }: Together): Promise<readonly PartResult[]> {
  const inRear = runLane(rear, "in the rear");
  const results = await runLane(front, "in front");
  const others = await inRear;
  for (const { output } of others) process.stdout.write(output);
  return [...results, ...others];
}

async function runLane(parts: readonly Part[], place: Place): Promise<readonly PartResult[]> {
  const results: PartResult[] = [];
  for (const { name, run } of parts) {
    const startedAtMs = performance.now();
    const ran = await run(place);
    results.push({ ...ran, name, seconds: (performance.now() - startedAtMs) / 1000 });
  }
  return results;
}

/** A check that npm knows by this name. */
export function npmScript(name: string): Part {
  const count = { passed: 0, failed: 0, skipped: 0 };
  const run = async (place: Place): Promise<Ran> => ({
    ...(await start({ program: "npm", args: ["run", "--silent", name], place })),
    count,
  });
  return { name, run };
}

export interface TestFiles {
  readonly name: string;
  /** For Node's test runner. */
  readonly flags: readonly string[];
  /** Paths and patterns below the checkout. */
  readonly files: readonly string[];
  /** Runs at a lower priority. */
  readonly leavesTheMachine?: boolean;
}

export function testFiles({ name, flags, files, leavesTheMachine = false }: TestFiles): Part {
  return { name, run: (place) => runTests([...flags], files, { place, leavesTheMachine }) };
}

interface Started {
  readonly program: string;
  readonly args: readonly string[];
  readonly place: Place;
  readonly priority?: number;
}

async function runTests(
  flags: readonly string[],
  files: readonly string[],
  { place, leavesTheMachine }: { readonly place: Place; readonly leavesTheMachine: boolean },
): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), "space-test-"));
  const summary = join(folder, "summary.tap");
  try {
    const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=tap"];
    const { code, output } = await start({
      program: process.execPath,
      args: ["--test", ...flags, ...reporters, `--test-reporter-destination=${summary}`, ...files],
      place,
      priority: leavesTheMachine ? 10 : 0,
    });
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

/** What is in front prints to the terminal; what is in the rear prints has to be shown by the caller. */
async function start({ program, args, place, priority = 0 }: Started): Promise<{
  readonly code: number;
  readonly output: string;
}> {
  const to = place === "in front" ? "inherit" : "pipe";
  const child = spawn(program, [...args], { cwd: checkout, stdio: ["ignore", to, "inherit"] });
  if (child.pid !== undefined && priority !== 0) setPriority(child.pid, priority);
  const printed: Buffer[] = [];
  child.stdout?.on("data", (piece: Buffer) => printed.push(piece));
  const closed = child.stdout === null ? undefined : once(child.stdout, "close");
  const limit = setTimeout(() => {
    process.stderr.write(`ended after ${limitMs / 60_000} minutes: ${program} ${args.join(" ")}\n`);
    child.kill("SIGTERM"); // Node's runner reports what it has, and ends the file that it waits for
  }, limitMs);
  const [code] = await Promise.all([exitCode(child), closed]);
  clearTimeout(limit);
  return { code, output: Buffer.concat(printed).toString() };
}
