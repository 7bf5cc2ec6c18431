// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { join } from "node:path";
import { checkout } from "../product.ts";
import { exitCode } from "./exit-code.ts";

/** `./space sim`: the simulation runs in processes of its own, because it gives the product another event loop. */
export function sim(args: readonly string[]): Promise<number> {
  const program = join(checkout, "packages/testing/sim/main.ts");
  return exitCode(spawn(process.execPath, [program, ...args], { stdio: "inherit" }));
}
