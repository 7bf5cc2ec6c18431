// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { join } from "node:path";
import { findRunsc, installRunsc, type RunscProgram, type RunscSearch } from "@space/substrate-gvisor";
import { checkout } from "../product.ts";

/** Programs that SPACE has fetched for itself. */
export const tools: string = join(checkout, ".space/tools");
const installLimitMs = 300_000;

export const searchRunsc = (): Promise<RunscSearch> => findRunsc(tools);

/** Fetches it where none that works is found. Throws `host/unfit`. */
export function ensureRunsc(): Promise<{ readonly program: RunscProgram; readonly installed: boolean }> {
  return installRunsc(tools, AbortSignal.timeout(installLimitMs));
}
