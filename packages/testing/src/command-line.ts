// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ParseArgsConfig, parseArgs } from "node:util";

/** What a program of this package was started with is not as it should be; the message says what. */
export class CommandLineError extends Error {
  override readonly name = "CommandLineError";
}

/** Reads the arguments of this process strictly. Throws {@link CommandLineError}, which names the option, for what `config` does not know. */
export function readCommandLine<const T extends Omit<ParseArgsConfig, "args" | "strict">>(config: T) {
  try {
    return parseArgs({ ...config, strict: true });
  } catch (error) {
    throw new CommandLineError(error instanceof Error ? error.message : String(error));
  }
}

/** An option's whole number of at least `least`. Throws {@link CommandLineError}. */
export function wholeNumber(option: string, text: string, least: number): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isSafeInteger(number) && number >= least) return number;
  throw new CommandLineError(`--${option} takes a whole number of at least ${least}`);
}

/** Runs a program and sets the exit code; a wrong command line is told in one line, as `./space` tells it. */
export async function runProgram(program: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await program();
  } catch (error) {
    if (!(error instanceof CommandLineError)) throw error;
    process.stderr.write(`space: ${error.message}\n`);
    process.exitCode = 1;
  }
}
