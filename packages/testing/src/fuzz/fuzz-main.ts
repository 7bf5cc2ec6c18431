// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// `./space fuzz TARGET --seconds N [--seed S] [--save]`: started by the command, because the product holds no test code.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { corpusFolder, readCorpus } from "./corpus.ts";
import { type FuzzFailure, fuzz } from "./fuzz.ts";
import { fuzzTargets } from "./targets.ts";

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    seed: { type: "string" },
    save: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const [name = ""] = positionals;
const make = Object.hasOwn(fuzzTargets, name) ? fuzzTargets[name] : undefined;
const seconds = Number(values.seconds);
const seed = values.seed === undefined ? Date.now() % 2 ** 32 : Number(values.seed);
if (make === undefined || positionals.length !== 1 || !(seconds > 0) || !Number.isInteger(seed)) {
  const names = Object.keys(fuzzTargets).join(" | ");
  process.stderr.write(`usage: ./space fuzz ${names} --seconds N [--seed S] [--save] [--json]\n`);
  process.exit(2);
}

const plain = make();
const target = { ...plain, seeds: [...plain.seeds, ...readCorpus(name)] };
const endMs = performance.now() + seconds * 1000;
const report = fuzz(target, {
  seed,
  goesOn: () => performance.now() < endMs,
  monotonicMs: () => performance.now(),
  heapBytes: () => process.memoryUsage().heapUsed,
});
const { interesting, failure, ...rest } = report;
if (values.json)
  process.stdout.write(
    `${JSON.stringify({ target: name, ...rest, failure: shown(failure) }, undefined, 1)}\n`,
  );
else {
  process.stdout.write(
    `${name}: ${report.inputs} inputs of seed ${seed}, the slowest ${report.slowestMs.toFixed(1)} ms\n`,
  );
  for (const [outcome, count] of Object.entries(report.outcomes))
    process.stdout.write(`  ${count} ${outcome}\n`);
  if (failure !== null) process.stdout.write(`FAILED ${JSON.stringify(shown(failure), undefined, 1)}\n`);
}
if (values.save) {
  mkdirSync(corpusFolder(name), { recursive: true });
  const kept = [...interesting, ...(failure === null ? [] : [failure.minimised])].filter(
    ({ length }) => length <= 8_192,
  );
  for (const input of kept) {
    const id = createHash("sha256").update(input).digest("hex").slice(0, 16);
    writeFileSync(join(corpusFolder(name), id), input);
  }
  process.stdout.write(`saved ${kept.length} inputs\n`);
}
process.exitCode = failure === null ? 0 : 1;

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
