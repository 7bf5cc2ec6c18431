// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { figuresOf } from "./lifecycle-figures.ts";
import { judgeLifecycle } from "./lifecycle-goals.ts";

const sample = (ms: number) => ({ ms, cpuSeconds: ms / 100, bwrapMs: 10 });
const samples = {
  operations: {
    pause: [sample(100), sample(400), sample(300)],
    resumeSame: [sample(1)],
    resumeOther: [sample(801)],
    move: [sample(1)],
    fork: [sample(1)],
  },
  snapshotBytes: [5, 7, 100],
};

describe("the figures of the lifecycle", () => {
  it("have the middle time, the mean of the CPU time, and the ratio to the baseline of the same round", () => {
    const { operations, snapshotBytes } = figuresOf({ variant: "namespace-criu", megabytes: 64 }, samples);
    const [pause] = operations;
    assert.deepEqual(pause, {
      operation: "pause",
      count: 3,
      p50Ms: 300,
      p99Ms: 398,
      cpuSeconds: 2.67,
      perBwrap: 30,
    });
    assert.equal(snapshotBytes.p50, 7);
  });

  it("are judged by the substrate and the load that they are of", () => {
    const figures = figuresOf({ variant: "namespace-criu", megabytes: 64 }, samples);
    const judged = judgeLifecycle([figures]).map(({ what, verdict }) => `${what}: ${verdict}`);
    assert.deepEqual(judged.slice(0, 4), [
      "namespace-criu, idle: pause, p50 ms: not measured",
      "namespace-criu, idle: resumeOther, p50 ms: not measured",
      "namespace-criu, 64 MB: pause, p50 ms: stretch",
      "namespace-criu, 64 MB: resumeOther, p50 ms: missed",
    ]);
  });
});
