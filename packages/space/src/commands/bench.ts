// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { benchCapability, tellCapability } from "../bench/capability-bench.ts";
import { tellLifecycle } from "../bench/lifecycle-report.ts";
import { benchLifecycle } from "../bench/lifecycle-run.ts";
import { benchPath } from "../bench/path-bench.ts";
import { differences, summarise, tellPath } from "../bench/path-report.ts";
import { tellStart } from "../bench/start-report.ts";
import { benchStart } from "../bench/start-run.ts";
import { UsageError } from "../failure.ts";
import { requireHost } from "../host/host-fitness.ts";
import { readArguments } from "./arguments.ts";

export interface BenchOptions {
  readonly what: "path" | "start" | "lifecycle" | "capability";
  readonly json: boolean;
  /** Fewer and shorter samples: for a first look. */
  readonly quick: boolean;
  /** Of `lifecycle`: how long executions are created, used and killed without a pause. */
  readonly seconds: number;
}

/**
 * `./space bench path|start|lifecycle|capability [--json] [--quick]`: measures against baselines in the same run. A missed goal is
 * an answer and exits 0; a run that cannot be believed exits 1.
 */
export async function bench(args: readonly string[]): Promise<number> {
  const { what, json, quick, seconds } = parseBenchOptions(args);
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  if (what === "capability") {
    const cost = await benchCapability(quick, progress);
    print(json, cost, () => tellCapability(cost));
    return cost.unsound.length === 0 ? 0 : 1;
  }
  await requireHost("the benchmark starts real sandboxes");
  if (what === "lifecycle") {
    const life = await benchLifecycle({ quick, seconds }, progress);
    return print(json, life, () => tellLifecycle(life));
  }
  const report = await (what === "path" ? benchPath(quick, progress) : benchStart(quick, progress));
  if (report.bench === "start") return print(json, report, () => tellStart(report));
  const { samples, ...rest } = report;
  const summaries = { summary: summarise(samples), verificationCost: differences(samples) };
  return print(json, { ...rest, ...summaries, samples }, () => tellPath(report));
}

function print(json: boolean, document: object, text: () => string): number {
  process.stdout.write(json ? `${JSON.stringify(document, undefined, 1)}\n` : text());
  return 0;
}

const options = {
  json: { type: "boolean", default: false },
  quick: { type: "boolean", default: false },
  seconds: { type: "string" },
} as const;

/** Throws {@link UsageError}. */
export function parseBenchOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const [what, ...rest] = positionals;
  const { seconds: text, json, quick } = values;
  if (
    rest.length > 0 ||
    (what !== "path" && what !== "start" && what !== "lifecycle" && what !== "capability")
  )
    throw new UsageError("say what to measure: ./space bench path, start, lifecycle, or capability");
  if (text !== undefined && what !== "lifecycle")
    throw new UsageError("--seconds is for ./space bench lifecycle");
  return { what, json, quick, seconds: parseSeconds(text ?? (quick ? "6" : "60")) };
}

function parseSeconds(text: string): number {
  const seconds = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (seconds === 0) throw new UsageError(`--seconds ${JSON.stringify(text)} is not a whole number from 1`);
  return seconds;
}
