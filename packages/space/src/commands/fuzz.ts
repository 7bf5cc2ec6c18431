// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { join } from "node:path";
import { checkout } from "../product.ts";
import { exitCode } from "./exit-code.ts";

/** `./space fuzz TARGET --seconds N [--seed S] [--save] [--json]`: exits 1 with the shortest input that makes a parser fail. */
export function fuzz(args: readonly string[]): Promise<number> {
  const program = join(checkout, "packages/testing/src/fuzz/fuzz-main.ts");
  return exitCode(spawn(process.execPath, [program, ...args], { stdio: ["ignore", "inherit", "inherit"] }));
}
