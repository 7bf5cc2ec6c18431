// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { explain, UsageError } from "../failure.ts";
import { ensureCriu } from "../host/criu.ts";
import { requireHost } from "../host/host-fitness.ts";
import { ensurePython } from "../host/python.ts";
import { ensureRunsc } from "../host/runsc.ts";
import { checkout } from "../product.ts";
import { testGroups, unitGroups } from "./test-groups.ts";
import { type Counts, npmScript, type Part, runTogether, type Together, testFiles } from "./test-parts.ts";

/** `./space test [FILE...]`: the static checks, then every test; or only the tests in the files named. */
export async function test(args: readonly string[]): Promise<number> {
  if (args.some((arg) => arg.startsWith("-"))) throw new UsageError("usage: ./space test [FILE...]");
  await requireHost("the tests start real sandboxes");
  await ensurePython("guests in the tests run Python programs");
  await fetchTool("gVisor", ensureRunsc);
  await fetchTool("memory snapshots of the namespace driver", ensureCriu);
  const failed: string[] = [];
  const counts: Counts[] = [];
  const took: string[] = [];
  const together = args.length > 0 ? { front: [named(args)], rear: [] } : everything();
  for (const { name, code, count, seconds } of await runTogether(together)) {
    if (code !== 0) failed.push(name);
    counts.push(count);
    took.push(`${name} ${seconds.toFixed(0)} s`);
  }
  const sum = (field: keyof Counts): number => counts.reduce((total, count) => total + count[field], 0);
  process.stdout.write(`${took.join(", ")}\n`);
  if (failed.length > 0) process.stdout.write(`not as it should be: ${failed.join(", ")}\n`);
  const failures = Math.max(sum("failed"), failed.length);
  process.stdout.write(`${sum("passed")} passed, ${failures} failed, ${sum("skipped")} skipped\n`);
  return failures === 0 ? 0 : 1;
}

/** Once; without it the tests that need it are skipped, and say so. */
async function fetchTool(what: string, ensure: () => Promise<unknown>): Promise<void> {
  try {
    await ensure();
  } catch (error) {
    process.stderr.write(`tests of ${what} are skipped: ${explain(error)}\n`);
  }
}

const isolated = ["--test-concurrency=1", "--test-timeout=300000"];

function named(files: readonly string[]): Part {
  return testFiles({ name: "tests", flags: isolated, files });
}

const staticChecks = ["format:check", "lint", "types", "boundaries", "rules:check", "incidents:check"];

/**
 * Two lanes, to keep two processors busy. All that starts processes of the product is in the front one, for what tests on
 * the host count there must be their own.
 */
function everything(): Together {
  const { onTheHost, inProcess } = testGroups(checkout);
  const units = unitGroups(checkout);
  const unitTests = (name: string, files: readonly string[]): Part =>
    testFiles({ name, flags: ["--test-isolation=none", "--test-timeout=60000"], files });
  // They live in virtual time: it is all the same to them how much of the machine they get.
  const simulations = testFiles({
    name: "simulations",
    flags: ["--test-concurrency=1", "--test-timeout=900000"],
    files: ["packages/testing/sim/**/*.test.ts"],
    leavesTheMachine: true,
  });
  return {
    front: [
      unitTests("unit tests on the host", units.onTheHost),
      testFiles({ name: "tests on the host", flags: isolated, files: onTheHost }),
    ],
    rear: [
      ...staticChecks.map(npmScript),
      unitTests("unit tests in process", units.inProcess),
      testFiles({ name: "tests in process", flags: isolated, files: inProcess }),
      simulations,
    ],
  };
}
