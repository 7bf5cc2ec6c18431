// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoadSample } from "./load-samples.ts";
import { judgePath } from "./path-goals.ts";

function sample(changes: Partial<LoadSample>): LoadSample {
  return {
    contender: "path",
    connections: 16,
    round: 0,
    quiet: true,
    requests: 1000,
    requestsPerSecond: 1000,
    bytesPerRequest: 1400,
    errors: 0,
    p50Us: 100,
    p99Us: 200,
    cpuUs: {},
    ...changes,
  };
}

const measured = (samples: readonly LoadSample[], id: string, part: string): number | null | undefined =>
  judgePath(samples, []).find((goal) => goal.id === id && goal.what.includes(part))?.measured;

test("G5 compares what was measured in the same round", () => {
  const samples = [1000, 100, 900].flatMap((requestsPerSecond, round) => [
    sample({ round, requestsPerSecond }),
    sample({ round, contender: "path-unchecked", requestsPerSecond: requestsPerSecond / 0.9 }),
  ]);
  assert.equal(measured(samples, "G5", "c=16"), 0.9);
  assert.equal(measured(samples, "G5", "c=64"), null);
});

test("G6 is each internal process beside one request of a plain server", () => {
  const samples = [
    sample({ connections: 64, cpuUs: { worker: 15, bridge: 6 } }),
    sample({ connections: 64, contender: "hello", cpuUs: { server: 30 } }),
  ];
  assert.equal(measured(samples, "G6", "worker"), 0.5);
  assert.equal(measured(samples, "G6", "bridge"), 0.2);
});

test("G14 is the ratio of medians of each round", () => {
  const execs = [
    { round: 0, quiet: true, pathMs: [3, 3, 90], directMs: [2, 2, 2] },
    { round: 1, quiet: true, pathMs: [6, 6, 6], directMs: [5, 5, 5] },
  ];
  const goal = judgePath([], execs).find(({ id }) => id === "G14");
  assert.equal(goal?.measured, 1.35);
  assert.equal(goal?.verdict, "missed");
});

test("G16 counts the failures of every sample of the path, and of nobody else", () => {
  const samples = [
    sample({ requests: 50_000 }),
    sample({ requests: 50_000, round: 1, errors: 1 }),
    sample({ contender: "node", errors: 7 }),
  ];
  assert.equal(measured(samples, "G16", "failed"), 0.000_01);
});
