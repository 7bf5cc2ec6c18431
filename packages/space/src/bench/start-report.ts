// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { goalTable, runText, table } from "./report.ts";
import type { StartReport, Timing } from "./start-run.ts";

/** A line of a table of times: how many there were, and their middle and 99th percentile in milliseconds. */
export function timingRow(name: string, { count, p50Ms, p99Ms }: Timing): string[] {
  return [name, String(count), p50Ms.toFixed(2), p99Ms.toFixed(2)];
}

/** The report of `bench start` for a person. */
export function tellStart(report: StartReport): string {
  const { createToFirstResult, create, coldGuest, bwrap, sustained, idle } = report;
  return [
    runText(report),
    table(
      ["what", "n", "p50 ms", "p99 ms"],
      [
        timingRow("create to first result", createToFirstResult.one),
        timingRow("the same, 4 at a time", createToFirstResult.fourAtATime),
        timingRow("create", create),
        timingRow("guest, started cold", coldGuest),
        timingRow("bwrap and true", bwrap),
      ],
    ),
    `${sustained.executionsPerSecond} executions a second created, used and killed over ${sustained.seconds} s (${sustained.ownCpuSecondsPerExecution} CPU seconds of SPACE's each, ${sustained.cpuSecondsPerExecution} of the machine's)`,
    `${sustained.guestsPerSecond} guests of the substrate alone a second started, answering and ended (${sustained.cpuSecondsPerGuest} CPU seconds each); bwrap: ${sustained.bwrapPerSecond} starts a second`,
    `an idle sandbox: ${kibibytes(idle.guestPssBytes)} for its pid 1, ${kibibytes(idle.addedPssBytes)} in all (of ${idle.sandboxes}); an idle Node process: ${kibibytes(idle.nodePssBytes)}`,
    "",
    goalTable(report.goals),
  ].join("\n");
}

const kibibytes = (bytes: number): string => `${Math.round(bytes / 1024)} KiB`;
