// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { JudgedGoal } from "./goals.ts";
import type { PathReport } from "./path-run.ts";
import type { StartReport, Timing } from "./start-run.ts";

/** The report of `bench path` for a person. */
export function tellPath(report: PathReport): string {
  const rows = report.contenders.map(({ contender, connections, requestsPerSecond, p50Us, p99Us, cpuUs }) => [
    contender,
    String(connections),
    String(Math.round(requestsPerSecond)),
    String(Math.round(p50Us)),
    String(Math.round(p99Us)),
    Object.entries(cpuUs)
      .map(([role, microseconds]) => `${role} ${microseconds}`)
      .join(", "),
  ]);
  const { verificationUs, exec, requests, errors } = report;
  return [
    ...machine(report),
    table(["contender", "conn.", "req/s", "p50 µs", "p99 µs", "CPU µs a request"], rows),
    `an altered capability: the path answers ${report.altered.path}, the unchecked one ${report.altered.pathUnchecked}`,
    `verification costs ${verificationUs.workerCpu} µs of the worker's CPU at 64 connections, ${verificationUs.latency} µs of latency at 1`,
    `exec of true: ${exec.wholePathP50Ms.toFixed(2)} ms through the path (p99 ${exec.wholePathP99Ms.toFixed(2)}), ${exec.guestAloneP50Ms.toFixed(2)} ms by the guest's pid 1 alone`,
    `${errors} errors in ${requests} requests`,
    "",
    goals(report.goals),
  ].join("\n");
}

/** The report of `bench start` for a person. */
export function tellStart(report: StartReport): string {
  const { createToFirstResult, create, coldGuest, bwrap, sustained, idle } = report;
  const row = (name: string, { count, p50Ms, p99Ms }: Timing): string[] => [
    name,
    String(count),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
  ];
  return [
    ...machine(report),
    table(
      ["what", "n", "p50 ms", "p99 ms"],
      [
        row("create to first result", createToFirstResult.one),
        row("the same, 4 at a time", createToFirstResult.fourAtATime),
        row("create", create),
        row("guest, started cold", coldGuest),
        row("bwrap and true", bwrap),
      ],
    ),
    `${sustained.executionsPerSecond} executions a second created, used and killed over ${sustained.seconds} s (${sustained.cpuSecondsPerExecution} CPU seconds each); bwrap: ${sustained.bwrapPerSecond} starts a second`,
    `an idle sandbox: ${kibibytes(idle.guestPssBytes)} for its pid 1, ${kibibytes(idle.addedPssBytes)} in all (of ${idle.sandboxes}); an idle Node process: ${kibibytes(idle.nodePssBytes)}`,
    "",
    goals(report.goals),
  ].join("\n");
}

const kibibytes = (bytes: number): string => `${Math.round(bytes / 1024)} KiB`;

function machine({ machine: facts, samplesWhileBusy }: PathReport | StartReport): string[] {
  const text = Object.entries(facts).map(([name, value]) => `${name} ${String(value)}`);
  return [`${text.join(", ")}; samples taken while the machine was busy: ${samplesWhileBusy}`, ""];
}

function goals(judged: readonly JudgedGoal[]): string {
  const rows = judged.map(({ id, what, is, goal, stretch, measured, verdict }) => [
    id,
    what,
    `${is === "at least" ? "≥" : "≤"} ${goal}`,
    String(stretch),
    measured === null ? "–" : String(measured),
    verdict,
  ]);
  return table(["goal", "ratio", "goal", "stretch", "measured", ""], rows);
}

/** Columns as wide as their widest cell. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => (row[at] ?? "").length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return `${[line(head), ...rows.map(line)].join("\n")}\n`;
}
