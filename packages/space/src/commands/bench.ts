// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { parseArgs } from "node:util";
import { UsageError } from "../failure.ts";

export interface BenchOptions {
  readonly what: "path" | "start";
  readonly json: boolean;
  /** Fewer and shorter samples: for a first look. */
  readonly quick: boolean;
}

/** `./space bench path|start [--json] [--quick]`: measures against baselines in the same run. */
export function bench(args: readonly string[]): Promise<number> {
  const { what } = parseBenchOptions(args);
  return Promise.reject(new UsageError(`bench ${what} is not there yet`));
}

/** Throws {@link UsageError}. */
export function parseBenchOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = parse(args);
  const [what, ...rest] = positionals;
  if (rest.length === 0 && (what === "path" || what === "start")) return { what, ...values };
  throw new UsageError("say what to measure: ./space bench path, or ./space bench start");
}

function parse(args: readonly string[]) {
  const options = {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
  } as const;
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
