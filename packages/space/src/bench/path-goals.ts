// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { atLeast, atMost, type JudgedGoal, judge } from "./goals.ts";
import { byRound, type LoadSample, pick } from "./load-samples.ts";
import { medianRatio } from "./statistics.ts";

type Value = (sample: LoadSample) => number | undefined;

const rate: Value = ({ requestsPerSecond }) => requestsPerSecond;
const p50: Value = ({ p50Us }) => p50Us;
const p99: Value = ({ p99Us }) => p99Us;

/** Median over the rounds of one contender's value over another's of the same round. */
export function ratio(
  samples: readonly LoadSample[],
  of: readonly [numerator: string, denominator: string],
  connections: number,
  value: Value,
): number | undefined {
  const [numerator, denominator] = of.map((name) => byRound(pick(samples, name, connections), value));
  return medianRatio(numerator ?? [], denominator ?? []);
}

/** What the path run measures besides load. */
export interface OtherMeasures {
  /** Median of (exec through the whole path / spawn by the guest's own pid 1), round by round. */
  readonly execRatio: number | undefined;
  readonly requests: number;
  readonly errors: number;
}

/** CPU of one internal hop over that of a whole plain Node answer, by round. */
function hopCost(samples: readonly LoadSample[], role: string): number | undefined {
  const hop = byRound(pick(samples, "path", 64), ({ cpuUs }) => cpuUs[role]);
  return medianRatio(
    hop,
    byRound(pick(samples, "hello", 64), ({ cpuUs }) => cpuUs["server"]),
  );
}

/** G1–G6, G14 and G16 of the design, judged. */
export function judgePath(samples: readonly LoadSample[], other: OtherMeasures): readonly JudgedGoal[] {
  const of = (
    numerator: string,
    denominator: string,
    connections: number,
    value: Value,
  ): number | undefined => ratio(samples, [numerator, denominator], connections, value);
  const tail = "node-checked-files";
  return [
    judge(
      atLeast("G1", "one hop with the check / without, requests/s, 16 connections", 0.85, 0.93),
      of(tail, "node-files", 16, rate),
    ),
    judge(atLeast("G1", "the same, 64 connections", 0.85, 0.93), of(tail, "node-files", 64, rate)),
    judge(atMost("G1", "the same, p50 at 1 connection", 1.15, 1.08), of(tail, "node-files", 1, p50)),
    judge(
      atLeast("G2", "one hop, every token new / without the check, requests/s, 64 connections", 0.35, 0.5),
      of("node-checked-fresh-files", "node-files", 64, rate),
    ),
    judge(
      atLeast("G3", "one Node hop with the check / nginx, requests/s, 64 connections", 0.25, 0.4),
      of(tail, "nginx-files", 64, rate),
    ),
    judge(atLeast("G3", "the same, 16 connections", 0.38, 0.5), of(tail, "nginx-files", 16, rate)),
    judge(atLeast("G3", "the same, 1 connection", 0.5, 0.7), of(tail, "nginx-files", 1, rate)),
    judge(
      atLeast("G4", "the whole path / one nginx hop to a file, requests/s, 64 connections", 0.35, 0.5),
      of("path", "nginx-files", 64, rate),
    ),
    judge(atMost("G4", "the same, p50 at 1 connection", 5, 3), of("path", "nginx-files", 1, p50)),
    judge(
      atLeast(
        "G4'",
        "the whole path / one nginx hop to the same agent, requests/s, 64 connections",
        0.35,
        0.5,
      ),
      of("path", "nginx", 64, rate),
    ),
    judge(atMost("G4'", "the same, p50 at 1 connection", 5, 3), of("path", "nginx", 1, p50)),
    judge(
      atLeast("G5", "the whole path with verification / without, requests/s, 1 connection", 0.9, 0.95),
      of("path", "path-unchecked", 1, rate),
    ),
    judge(atLeast("G5", "the same, 16 connections", 0.9, 0.95), of("path", "path-unchecked", 16, rate)),
    judge(atLeast("G5", "the same, 64 connections", 0.9, 0.95), of("path", "path-unchecked", 64, rate)),
    judge(
      atMost("G6", "CPU of the worker's hop / of a whole Node answer", 0.4, 0.15),
      hopCost(samples, "worker"),
    ),
    judge(
      atMost("G6", "CPU of the bridge's hop, which speaks envd, / of a whole Node answer", 0.4, 0.15),
      hopCost(samples, "bridge"),
    ),
    judge(
      atMost("G14", "exec of true through the whole path / by the guest's pid 1 alone, p50", 1.3, 1.12),
      other.execRatio,
    ),
    judge(
      atMost("G16", "p99 with verification / without, 16 connections", 1.5, 1.2),
      of("path", "path-unchecked", 16, p99),
    ),
    judge(
      atMost("G16", `errors in ${other.requests} requests (wants 100,000)`, 0, 0),
      other.requests >= 100_000 ? other.errors : undefined,
    ),
  ];
}
