// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { join } from "node:path";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { UsageError } from "../failure.ts";
import { checkout } from "../product.ts";

/** Where everything is kept when nothing else was said. */
export const defaultDataFolder = join(checkout, ".space/data");

/** Where a command writes what it has to say. */
export type Write = (text: string) => unknown;

export const toStdout: Write = (text) => process.stdout.write(text);

/** Reads a command's arguments strictly: throws {@link UsageError} for what `config` does not name. */
export function readArguments<const T extends Omit<ParseArgsConfig, "args" | "strict">>(
  args: readonly string[],
  config: T,
) {
  try {
    return parseArgs({ ...config, args: [...args], strict: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
