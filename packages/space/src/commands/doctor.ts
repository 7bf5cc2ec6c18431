// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { buildText } from "@space/substrate-gvisor";
import { ensureCriu, probeCriu } from "../host/criu.ts";
import { drivers } from "../host/drivers.ts";
import { type HostFact, hostFacts, thisHost } from "../host/host-fitness.ts";
import { ensureRunsc, searchRunsc } from "../host/runsc.ts";
import { readArguments } from "./arguments.ts";

const flags = { install: { type: "boolean", default: false } } as const;

/**
 * `./space doctor`: which drivers work here, and what is missing for the others. Exit 1 when none does. With `--install` it
 * first fetches what drivers need and can be had without changing the host: runsc and CRIU.
 */
export async function doctor(args: readonly string[]): Promise<number> {
  const { install } = readArguments(args, { options: flags, allowPositionals: false }).values;
  if (install) await installTools();
  const facts = hostFacts(thisHost);
  for (const fact of facts) process.stdout.write(`${line(fact)}\n`);
  process.stdout.write("\ndrivers\n");
  const states = drivers(facts, thisHost, { runsc: await searchRunsc(), criu: await probeCriu() });
  for (const { name, works, why } of states) {
    process.stdout.write(
      `  ${name.padEnd(12)} ${works ? "works" : "does not work"}${why === "" ? "" : `: ${why}`}\n`,
    );
  }
  return states.some(({ works }) => works) ? 0 : 1;
}

async function installTools(): Promise<void> {
  const { program, installed } = await ensureRunsc();
  say(installed, `${buildText(program.build)} at ${program.path}`);
  const criu = await ensureCriu();
  say(criu.installed, `CRIU ${criu.program.version} at ${criu.program.path}`);
  process.stdout.write("\n");
}

function say(installed: boolean, what: string): void {
  process.stdout.write(`${installed ? "fetched" : "present"}: ${what}\n`);
}

function line({ name, state, found, remedy }: HostFact): string {
  const advice = remedy === "" ? "" : `\n${" ".repeat(27)}→ ${remedy}`;
  return `${state.padEnd(8)} ${name.padEnd(17)} ${found}${advice}`;
}
