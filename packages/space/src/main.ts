// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { explain } from "./failure.ts";

/** A command gets the arguments after its name and answers with the exit code. */
type Command = (args: readonly string[]) => Promise<number>;

const help = async (): Promise<Command> => (await import("./commands/help.ts")).help;
const version = async (): Promise<Command> => (await import("./commands/version.ts")).version;

/** Each is read when it is asked for: all of SPACE would take a small command half a second. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  audit: async () => (await import("./commands/audit.ts")).audit,
  bench: async () => (await import("./commands/bench.ts")).bench,
  chain: async () => (await import("./commands/chain.ts")).chain,
  chaos: async () => (await import("./commands/chaos.ts")).chaos,
  demo: async () => (await import("./commands/demo.ts")).demo,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  drill: async () => (await import("./commands/drill.ts")).drill,
  fuzz: async () => (await import("./commands/fuzz.ts")).fuzz,
  help,
  keys: async () => (await import("./commands/keys.ts")).keys,
  sandbox: async () => (await import("./commands/sandbox.ts")).sandbox,
  sim: async () => (await import("./commands/sim.ts")).sim,
  test: async () => (await import("./commands/test.ts")).test,
  up: async () => (await import("./commands/up.ts")).up,
  version,
  workers: async () => (await import("./commands/workers.ts")).workers,
  "--help": help,
  "-h": help,
  "--version": version,
};

async function main(args: readonly string[]): Promise<number> {
  const [name = "help", ...rest] = args;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined) return (await command())(rest);
  process.stderr.write(`space: there is no command ${JSON.stringify(name)}; ./space help lists them\n`);
  return 2;
}

// What is printed to a terminal or pipe that is gone is lost, and must not end a command that still has to clean up.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`space: ${explain(error)}\n`);
  process.exitCode = 1;
}
