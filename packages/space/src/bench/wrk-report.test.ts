// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseWrkOutput, reportMark } from "./wrk-report.ts";

const whole = {
  requests: 20_000,
  bytes: 30_000_000,
  microseconds: 2_000_000,
  errors: { connect: 1, read: 2, write: 3, status: 4, timeout: 5 },
  latency: { p50: 90, p90: 120, p99: 400, max: 9_000, mean: 95.5 },
};

const output = (report: unknown): string =>
  `Running 2s test @ http://127.0.0.1:1/\n  1 threads and 16 connections\n${reportMark}${JSON.stringify(report)}\n`;

test("the report is found among what wrk prints, and rates are per second", () => {
  assert.deepEqual(parseWrkOutput(output(whole)), {
    requests: 20_000,
    requestsPerSecond: 10_000,
    bytesPerRequest: 1500,
    errors: 15,
    p50Us: 90,
    p99Us: 400,
  });
});

test("a run without one request is a report, not a division by zero", () => {
  assert.equal(parseWrkOutput(output({ ...whole, requests: 0, bytes: 0 })).bytesPerRequest, 0);
});

test("what is not a report is refused", () => {
  const { latency: _latency, ...without } = whole;
  for (const text of [
    "",
    "unable to connect",
    output(without),
    output({ ...whole, requests: -1 }),
    `${reportMark}{`,
  ]) {
    assert.throws(() => parseWrkOutput(text), { code: "input/invalid" }, text);
  }
});
