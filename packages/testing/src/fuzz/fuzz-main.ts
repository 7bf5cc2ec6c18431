// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// `./space fuzz TARGET --seconds N [--seed S] [--save]`: started by the command, because the product holds no test code.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CommandLineError, readCommandLine, runProgram, wholeNumber } from "../command-line.ts";
import { corpusFolder, readCorpus } from "./corpus.ts";
import { type FuzzFailure, type FuzzReport, fuzz } from "./fuzz.ts";
import { fuzzTargets } from "./targets.ts";

interface Command {
  readonly name: string;
  readonly seconds: number;
  readonly seed: number;
  readonly save: boolean;
  readonly json: boolean;
}

function readCommand(): Command {
  const { values, positionals } = readCommandLine({
    options: {
      seconds: { type: "string", default: "30" },
      seed: { type: "string" },
      save: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
    allowPositionals: true,
  });
  const [name = ""] = positionals;
  if (positionals.length !== 1 || !Object.hasOwn(fuzzTargets, name)) {
    const names = Object.keys(fuzzTargets).join(" | ");
    throw new CommandLineError(
      `say which target: ./space fuzz ${names} --seconds N [--seed S] [--save] [--json]`,
    );
  }
  const seconds = wholeNumber("seconds", values.seconds, 1);
  const seed = values.seed === undefined ? Date.now() % 2 ** 32 : wholeNumber("seed", values.seed, 0);
  return { name, seconds, seed, save: values.save, json: values.json };
}

/** Exits 1 with the shortest input that makes a parser fail. */
async function main(): Promise<number> {
  const command = readCommand();
  const { name, seed, save } = command;
  const plain = fuzzTargets[name]?.();
  if (plain === undefined) throw new TypeError("no such target");
  const target = { ...plain, seeds: [...plain.seeds, ...readCorpus(name)] };
  const endMs = performance.now() + command.seconds * 1000;
  const report = fuzz(target, {
    seed,
    goesOn: () => performance.now() < endMs,
    monotonicMs: () => performance.now(),
    heapBytes: () => process.memoryUsage().heapUsed,
  });
  tell(command, report);
  if (save) keep(name, report);
  return report.failure === null ? 0 : 1;
}

function tell({ name, seed, json }: Command, report: FuzzReport): void {
  const { interesting: _kept, failure, ...rest } = report;
  if (json) {
    const document = { target: name, ...rest, failure: shown(failure) };
    process.stdout.write(`${JSON.stringify(document, undefined, 1)}\n`);
    return;
  }
  process.stdout.write(
    `${name}: ${report.inputs} inputs of seed ${seed}, the slowest ${report.slowestMs.toFixed(1)} ms\n`,
  );
  for (const [outcome, count] of Object.entries(report.outcomes))
    process.stdout.write(`  ${count} ${outcome}\n`);
  if (failure !== null) process.stdout.write(`FAILED ${JSON.stringify(shown(failure), undefined, 1)}\n`);
}

/** Saves what was interesting, and what failed, into the corpus. */
function keep(name: string, { interesting, failure }: FuzzReport): void {
  mkdirSync(corpusFolder(name), { recursive: true });
  const kept = [...interesting, ...(failure === null ? [] : [failure.minimised])].filter(
    ({ length }) => length <= 8_192,
  );
  for (const input of kept) {
    const id = createHash("sha256").update(input).digest("hex").slice(0, 16);
    writeFileSync(join(corpusFolder(name), id), input);
  }
  process.stderr.write(`saved ${kept.length} inputs\n`);
}

function shown(found: FuzzFailure | null): object | null {
  if (found === null) return null;
  const { problem, input, minimised } = found;
  return {
    problem,
    minimised: minimised.toString("latin1"),
    base64: minimised.toString("base64"),
    inputBytes: input.length,
  };
}

await runProgram(main);
