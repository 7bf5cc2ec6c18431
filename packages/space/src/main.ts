// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { audit } from "./commands/audit.ts";
import { bench } from "./commands/bench.ts";
import { chain } from "./commands/chain.ts";
import { chaos } from "./commands/chaos.ts";
import { demo } from "./commands/demo.ts";
import { doctor } from "./commands/doctor.ts";
import { drill } from "./commands/drill.ts";
import { fuzz } from "./commands/fuzz.ts";
import { help } from "./commands/help.ts";
import { keys } from "./commands/keys.ts";
import { sandbox } from "./commands/sandbox.ts";
import { sim } from "./commands/sim.ts";
import { test } from "./commands/test.ts";
import { up } from "./commands/up.ts";
import { version } from "./commands/version.ts";
import { workers } from "./commands/workers.ts";
import { explain } from "./failure.ts";

/** A command gets the arguments after its name and answers with the exit code. */
type Command = (args: readonly string[]) => Promise<number>;

const commands: Readonly<Record<string, Command>> = {
  audit,
  bench,
  chain,
  chaos,
  demo,
  doctor,
  fuzz,
  drill,
  help,
  keys,
  sandbox,
  sim,
  test,
  up,
  version,
  workers,
  "--help": help,
  "-h": help,
  "--version": version,
};

async function main(args: readonly string[]): Promise<number> {
  const [name = "help", ...rest] = args;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined) return command(rest);
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
