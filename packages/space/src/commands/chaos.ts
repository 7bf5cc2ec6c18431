// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomInt } from "node:crypto";
import { requireRunsc } from "@space/substrate-gvisor";
import { type ChaosOptions, type ChaosReport, runChaos } from "../chaos/chaos.ts";
import { UsageError } from "../failure.ts";
import { probeCriu } from "../host/criu.ts";
import { requireHost } from "../host/host-fitness.ts";
import { tools } from "../host/runsc.ts";
import { readArguments } from "./arguments.ts";

const flags = {
  minutes: { type: "string", default: "10" },
  seed: { type: "string" },
  sandboxes: { type: "string", default: "6" },
  workers: { type: "string", default: "2" },
  substrate: { type: "string", default: "namespace" },
  memory: { type: "string" },
  keep: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

const seeds = 1_000_000;
/** The shortest that a worker may have, so that more of them end in a run. */
const leaseSeconds = 15;
const mostSandboxes = 32;
const mostWorkers = 8;

export interface ChaosArguments extends Omit<ChaosOptions, "memory"> {
  /** Undefined: CRIU where it works, frozen in memory otherwise. */
  readonly memory: ChaosOptions["memory"] | undefined;
  readonly json: boolean;
}

/** `./space chaos [--minutes N] [--seed S] ... [--json]`. Exits 0 when everything held, 1 when not. */
export async function chaos(args: readonly string[]): Promise<number> {
  const { json, memory, ...options } = parseChaos(args);
  await requireHost("chaos starts real sandboxes");
  if (options.substrate === "gvisor") await requireRunsc(tools);
  const report = await runChaos({ ...options, memory: memory ?? (await usualMemory()) });
  process.stdout.write(json ? `${JSON.stringify(report, undefined, 1)}\n` : tell(report));
  return report.ok ? 0 : 1;
}

async function usualMemory(): Promise<ChaosOptions["memory"]> {
  const { found, fault } = await probeCriu();
  return found !== undefined && fault === undefined ? "criu" : "frozen";
}

/** Throws {@link UsageError} naming the flag to change. */
export function parseChaos(args: readonly string[]): ChaosArguments {
  const { values } = readArguments(args, { options: flags });
  const { substrate, memory, seed = String(randomInt(seeds)) } = values;
  if (substrate !== "namespace" && substrate !== "gvisor")
    throw new UsageError("--substrate is namespace or gvisor");
  if (memory !== undefined && memory !== "frozen" && memory !== "criu")
    throw new UsageError("--memory is frozen or criu");
  if (memory !== undefined && substrate === "gvisor")
    throw new UsageError("--memory is for the namespace substrate: gVisor saves memory by itself");
  if (!/^[0-9A-Za-z]{1,40}$/.test(seed)) throw new UsageError("--seed is 1 to 40 letters and digits");
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 1440)) throw new UsageError("--minutes is above 0, and 1440 at most");
  return {
    seed,
    seconds: minutes * 60,
    sandboxes: whole("--sandboxes", values.sandboxes, 1, mostSandboxes),
    // With one there is nowhere to move to.
    workers: whole("--workers", values.workers, 2, mostWorkers),
    substrate,
    memory,
    leaseSeconds,
    keep: values.keep,
    json: values.json,
  };
}

function whole(flag: string, text: string, ...[least, most]: [number, number]): number {
  const number = Number(text);
  if (/^[0-9]{1,3}$/.test(text) && number >= least && number <= most) return number;
  throw new UsageError(`${flag} needs a whole number from ${least} to ${most}`);
}

/** One line for each figure. */
function tell({ operations, violations, ...rest }: ChaosReport): string {
  const lines = Object.entries(rest).map(([name, value]) => `  ${name.padEnd(20)}${JSON.stringify(value)}\n`);
  const ran = Object.entries(operations).map(
    ([name, { served, again, errors }]) =>
      `  ${name.padEnd(28)}served ${served}, again ${JSON.stringify(again)}, errors ${JSON.stringify(errors)}\n`,
  );
  const found = violations.map(({ kind, what }) => `  ${kind}: ${what}\n`);
  return `${rest.ok ? "held" : "DID NOT HOLD"}\n${lines.join("")}operations\n${ran.join("")}${found.length > 0 ? `violations\n${found.join("")}` : ""}`;
}
