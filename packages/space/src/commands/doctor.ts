// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { drivers } from "../host/drivers.ts";
import { type HostFact, hostFacts, thisHost } from "../host/host-fitness.ts";

/** `./space doctor`: which drivers work here, and what is missing for the others. Exit 1 when none does. */
export function doctor(): Promise<number> {
  const facts = hostFacts(thisHost);
  for (const fact of facts) process.stdout.write(`${line(fact)}\n`);
  process.stdout.write("\ndrivers\n");
  const states = drivers(facts, thisHost);
  for (const { name, works, why } of states) {
    process.stdout.write(
      `  ${name.padEnd(12)} ${works ? "works" : "does not work"}${why === "" ? "" : `: ${why}`}\n`,
    );
  }
  return Promise.resolve(states.some(({ works }) => works) ? 0 : 1);
}

function line({ name, state, found, remedy }: HostFact): string {
  const advice = remedy === "" ? "" : `\n${" ".repeat(27)}→ ${remedy}`;
  return `${state.padEnd(8)} ${name.padEnd(17)} ${found}${advice}`;
}
