// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { atLeast, atMost, type JudgedGoal, judge } from "./goals.ts";
import { byRound, type LoadSample, pick } from "./load-samples.ts";
import { median, medianRatio } from "./statistics.ts";

export interface ExecSample {
  readonly round: number;
  readonly quiet: boolean;
  /** Through the whole authorised path, and by the guest's own socket. */
  readonly pathMs: readonly number[];
  readonly directMs: readonly number[];
}

type Value = (sample: LoadSample) => number;

const rate: Value = ({ requestsPerSecond }) => requestsPerSecond;
const p50: Value = ({ p50Us }) => p50Us;
const p99: Value = ({ p99Us }) => p99Us;

/** G1 to G6, G14 and G16 of the design, each ratio taken within each round. */
export function judgePath(
  samples: readonly LoadSample[],
  execs: readonly ExecSample[],
): readonly JudgedGoal[] {
  const ratio = (value: Value, connections: number, over: string, under: string): number | undefined =>
    medianRatio(
      byRound(pick(samples, over, connections), value),
      byRound(pick(samples, under, connections), value),
    );
  return [
    ...hopGoals(ratio, "-files", ""),
    ...pathGoals(ratio, "nginx-files", ""),
    ...hopGoals(ratio, "", "'"),
    ...pathGoals(ratio, "nginx", "'"),
    ...[1, 16, 64].map((connections) =>
      judge(
        atLeast("G5", `whole path, checked / unchecked, rps c=${connections}`, 0.9, 0.95),
        ratio(rate, connections, "path", "path-unchecked"),
      ),
    ),
    ...["worker", "bridge"].map((role) =>
      judge(
        atMost("G6", `CPU of the ${role} / of a whole node:http answer, c=64`, 0.4, 0.15),
        cpuRatio(samples, role),
      ),
    ),
    judge(
      atMost("G14", "exec of true through the path / by the guest's socket, p50", 1.3, 1.12),
      execRatio(execs),
    ),
    judge(
      atMost("G16", "whole path, checked / unchecked, p99 c=16", 1.5, 1.2),
      ratio(p99, 16, "path", "path-unchecked"),
    ),
    judge(atMost("G16", "share of requests of the whole path that failed", 0, 0), errorShare(samples)),
  ];
}

type Ratio = (value: Value, connections: number, over: string, under: string) => number | undefined;

/** One hop beside the same hop without the check, and beside nginx. A prime: before an agent, which hides part of the cost. */
function hopGoals(ratio: Ratio, suffix: string, prime: string): readonly JudgedGoal[] {
  const [checked, fresh, plain, nginx] = ["node-checked", "node-checked-fresh", "node", "nginx"].map(
    (name) => `${name}${suffix}`,
  ) as [string, string, string, string]; // cast: four names give four
  const one = `G1${prime}`;
  const three = `G3${prime}`;
  return [
    judge(
      atLeast(one, "one hop with the check / without, rps c=16", 0.85, 0.93),
      ratio(rate, 16, checked, plain),
    ),
    judge(atLeast(one, "the same, rps c=64", 0.85, 0.93), ratio(rate, 64, checked, plain)),
    judge(atMost(one, "the same, p50 c=1", 1.15, 1.08), ratio(p50, 1, checked, plain)),
    judge(
      atLeast(`G2${prime}`, "the same, every token new, rps c=64", 0.35, 0.5),
      ratio(rate, 64, fresh, plain),
    ),
    judge(
      atLeast(three, "one hop with the check / nginx hop, rps c=64", 0.25, 0.4),
      ratio(rate, 64, checked, nginx),
    ),
    judge(atLeast(three, "the same, rps c=16", 0.38, 0.5), ratio(rate, 16, checked, nginx)),
    judge(atLeast(three, "the same, rps c=1", 0.5, 0.7), ratio(rate, 1, checked, nginx)),
  ];
}

function pathGoals(ratio: Ratio, nginx: string, prime: string): readonly JudgedGoal[] {
  const behind = prime === "" ? "a file" : "the same agent";
  return [
    judge(
      atLeast(`G4${prime}`, `whole path / one nginx hop to ${behind}, rps c=64`, 0.35, 0.5),
      ratio(rate, 64, "path", nginx),
    ),
    judge(atMost(`G4${prime}`, "the same, p50 c=1", 5, 3), ratio(p50, 1, "path", nginx)),
  ];
}

function cpuRatio(samples: readonly LoadSample[], role: string): number | undefined {
  return medianRatio(
    byRound(pick(samples, "path", 64), ({ cpuUs }) => cpuUs[role]),
    byRound(pick(samples, "hello", 64), ({ cpuUs }) => cpuUs["server"]),
  );
}

function execRatio(execs: readonly ExecSample[]): number | undefined {
  return medianRatio(
    execs.map(({ pathMs }) => median(pathMs)),
    execs.map(({ directMs }) => median(directMs)),
  );
}

function errorShare(samples: readonly LoadSample[]): number | undefined {
  const path = samples.filter(({ contender }) => contender === "path");
  const requests = path.reduce((sum, sample) => sum + sample.requests, 0);
  return requests === 0 ? undefined : path.reduce((sum, { errors }) => sum + errors, 0) / requests;
}
