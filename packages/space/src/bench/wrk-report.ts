// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import * as v from "valibot";

const count = v.pipe(v.number(), v.minValue(0));

const schema = v.strictObject({
  requests: count,
  bytes: count,
  microseconds: v.pipe(v.number(), v.minValue(1)),
  errors: v.strictObject({ connect: count, read: count, write: count, status: count, timeout: count }),
  latency: v.strictObject({ p50: count, p90: count, p99: count, max: count, mean: count }),
});

/** One run of the load generator. */
export interface LoadReport {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly bytesPerRequest: number;
  /** Connections that failed, broken transports, time-outs, and answers of status 400 and above. */
  readonly errors: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/** The mark of the line that our Lua script prints at the end. */
export const reportMark = "SPACE-REPORT ";

/** Reads what wrk has printed. Throws `input/invalid` when its report is missing or not of its form. */
export function parseWrkOutput(text: string): LoadReport {
  const line = text.split("\n").find((candidate) => candidate.startsWith(reportMark));
  if (line === undefined) throw invalid("no report");
  const parsed = v.safeParse(schema, parseJson(line.slice(reportMark.length)));
  if (!parsed.success) throw invalid(v.getDotPath(parsed.issues[0]) ?? "not of its form");
  const { requests, bytes, microseconds, errors, latency } = parsed.output;
  return {
    requests,
    requestsPerSecond: requests / (microseconds / 1e6),
    bytesPerRequest: requests === 0 ? 0 : bytes / requests,
    errors: Object.values(errors).reduce((sum, each) => sum + each, 0),
    p50Us: latency.p50,
    p99Us: latency.p99,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("not JSON");
  }
}

function invalid(problem: string): SpaceError {
  return new SpaceError("input/invalid", { field: "load report", problem });
}
