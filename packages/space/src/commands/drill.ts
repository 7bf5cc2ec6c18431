// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import { withControlApart } from "../drill/control-apart.ts";
import { drillCut } from "../drill/cut.ts";
import { drillDisk } from "../drill/disk.ts";
import { withSystem } from "../drill/drill-system.ts";
import { drillKeys } from "../drill/keys.ts";
import { drillLease } from "../drill/lease.ts";
import { drillMoves } from "../drill/moves.ts";
import { drillOutage } from "../drill/outage.ts";
import { partitionInOwnNetwork } from "../drill/own-network.ts";
import { drillTerminal } from "../drill/terminal.ts";
import { UsageError } from "../failure.ts";
import { type HostView, requireHost, thisHost } from "../host/host-fitness.ts";
import { readArguments } from "./arguments.ts";

/** What every drill reports besides its own figures. */
interface DrillReport {
  readonly drill: string;
  readonly ok: boolean;
}

/** The numbers that a drill takes, with what they are when not given. */
type Numbers = Readonly<Record<string, number>>;

interface Drill {
  readonly numbers: Numbers;
  /** Programs of the host that it needs besides what sandboxes need. */
  readonly programs?: readonly string[];
  run(numbers: (name: string) => number): Promise<DrillReport>;
}

/** The drills by name: real systems under real trouble, with an exit code that says whether they held. */
const drills: Readonly<Record<string, Drill>> = {
  moves: {
    numbers: { callers: 200, cycles: 100, sandboxes: 8, "pace-ms": 250 },
    run: (number) => {
      const options = {
        callers: number("callers"),
        cycles: number("cycles"),
        sandboxes: number("sandboxes"),
        paceMs: number("pace-ms"),
      };
      return withSystem(2, (system) => drillMoves(system, options));
    },
  },
  cut: {
    numbers: { streams: 100, rounds: 10 },
    run: (number) => {
      const options = { streams: number("streams"), rounds: number("rounds") };
      return withSystem(1, (system) => drillCut(system, options));
    },
  },
  disk: { numbers: {}, run: () => drillDisk() },
  keys: {
    numbers: { callers: 50, rounds: 6, "pace-ms": 50 },
    run: (number) => {
      const options = { callers: number("callers"), rounds: number("rounds"), paceMs: number("pace-ms") };
      return withSystem(2, (system) => drillKeys(system, options));
    },
  },
  lease: {
    numbers: { lease: 15, stop: 60 },
    run: (number) => {
      const limits = { leaseMs: number("lease") * 1000 };
      const stopSeconds = number("stop");
      return withSystem(2, (system, data) => drillLease(system, { data, stopSeconds }), { limits });
    },
  },
  outage: {
    programs: ["ss"],
    numbers: { seconds: 30, callers: 100, ramp: 50, streams: 10, "pace-ms": 200 },
    run: (number) => {
      const options = {
        outageSeconds: number("seconds"),
        callers: number("callers"),
        rampSeconds: number("ramp"),
        streams: number("streams"),
        paceMs: number("pace-ms"),
      };
      return withControlApart(2, (stage) => drillOutage(stage, options));
    },
  },
  partition: {
    programs: ["ip", "unshare", "nsenter"],
    numbers: { lease: 15, cut: 60 },
    run: (number) => partitionInOwnNetwork({ leaseSeconds: number("lease"), cutSeconds: number("cut") }),
  },
  terminal: {
    numbers: { bytes: 10_000, pauses: 50 },
    run: (number) => {
      const options = { bytes: number("bytes"), pauses: number("pauses") };
      return withSystem(1, (system) => drillTerminal(system, options));
    },
  },
};

/** `./space drill NAME [--NUMBER N]... [--json]`. Exits 0 when the drill held, 1 when not. */
export async function drill(args: readonly string[]): Promise<number> {
  const [name = "", ...rest] = args;
  const found = Object.hasOwn(drills, name) ? drills[name] : undefined;
  if (found === undefined)
    throw new UsageError(
      `say which drill: ${Object.keys(drills)
        .map((known) => `./space drill ${known}`)
        .join(", ")}`,
    );
  const { json, numbers } = parse(rest, found.numbers);
  await requireHost("the drill starts real sandboxes");
  requirePrograms(found.programs ?? [], thisHost);
  const report = await found.run((wanted) => numbers[wanted] ?? 0);
  process.stdout.write(json ? `${JSON.stringify(report, undefined, 1)}\n` : tell(report));
  return report.ok ? 0 : 1;
}

/** Throws `host/unfit` when one is missing. */
export function requirePrograms(names: readonly string[], host: Pick<HostView, "program">): void {
  const missing = names.filter((name) => host.program(name) === undefined);
  if (missing.length === 0) return;
  const problem = `the drill needs ${missing.join(" and ")}`;
  throw new SpaceError("host/unfit", { problem, remedy: "install iproute2 and util-linux" });
}

/** One line for each figure. */
function tell(report: DrillReport): string {
  const lines = Object.entries(report).map(([name, value]) => `  ${name.padEnd(20)}${figure(value)}\n`);
  return `${report.ok ? "held" : "DID NOT HOLD"}\n${lines.join("")}`;
}

function figure(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, part]) => `${name} ${String(part)}`)
    .join(", ");
}

/** Throws {@link UsageError}. */
export function parse(args: readonly string[], defaults: Numbers): { json: boolean; numbers: Numbers } {
  const options = Object.fromEntries(
    Object.keys(defaults).map((name) => [name, { type: "string" }] as const),
  );
  const { values } = readArguments(args, {
    options: { ...options, json: { type: "boolean", default: false } },
  });
  const given = Object.entries(values).filter(([name]) => name !== "json");
  const numbers = Object.fromEntries(given.map(([name, text]) => [name, positive(name, String(text))]));
  return { json: values["json"] === true, numbers: { ...defaults, ...numbers } };
}

function positive(name: string, text: string): number {
  if (/^[1-9][0-9]{0,6}$/.test(text)) return Number(text);
  throw new UsageError(`--${name} needs a whole number from 1 on`);
}
