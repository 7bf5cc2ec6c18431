// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The simulation's own process: `./space sim` starts it. See README.md in this folder.

import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { parseArgs } from "node:util";
import { CommandLineError, readCommandLine, runProgram, wholeNumber } from "../src/command-line.ts";
import { prepareLoading } from "./loader.ts";
import type { Mutant } from "./mutant.ts";
import { mutants } from "./mutants.ts";
import { runReport, tell } from "./run-report.ts";
import { mergeShards, type ShardReport } from "./shard-report.ts";

const options = {
  seed: { type: "string", default: "1" },
  executions: { type: "string", default: "20000" },
  shards: { type: "string" },
  json: { type: "boolean", default: false },
  world: { type: "string" },
  trace: { type: "boolean", default: false },
  mutants: { type: "boolean", default: false },
  mutant: { type: "string" },
  model: { type: "boolean", default: false },
  /** Nothing is struck; what the network and the machines do by themselves goes on. */
  calm: { type: "boolean", default: false },
  /** Of the model: 1, 2 or 3. */
  generations: { type: "string" },
  /** As if a mutant were loaded. */
  hunt: { type: "boolean", default: false },
  /** For the processes that this one starts: which of how many, and how many executions a world has. */
  shard: { type: "string" },
  "world-size": { type: "string", default: "400" },
} as const;

/** Executions within which a mutant must be caught. */
const mutantExecutions = 12_000;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

/** How many executions there are between two lines about how far a process is; on standard error, never in a report. */
const progressEvery = 20_000;

/** A world's beginning and end cost a third of a small one: a long run has larger ones, a short one more of them. */
function worldSizeOf(executions: number): number {
  if (executions >= 1_000_000) return 2500;
  return executions >= 100_000 ? 1000 : 400;
}

/** Works on worlds in this very process, and writes its report to whoever listens. */
async function shard(values: Values): Promise<number> {
  const { mutant: name, world, trace, seed, executions } = values;
  const mutant = name === undefined ? undefined : mutants.find((candidate) => candidate.name === name);
  if (name !== undefined && mutant === undefined) throw new CommandLineError(`there is no mutant ${name}`);
  prepareLoading(mutant);
  const { runShard } = await import("./shard.ts");
  const [index = 0, of = 1] = (values.shard ?? "0/1").split("/").map(Number);
  let told = 0;
  const report = await runShard(
    {
      seed,
      executions: Number(executions),
      worldSize: Number(values["world-size"]),
      index,
      of,
      world,
      trace,
      calm: values.calm,
      hunting: mutant !== undefined || values.hunt,
    },
    ({ executions: made, violations }) => {
      if (made - told < progressEvery) return;
      told = made;
      const cpuSeconds = Math.round(process.cpuUsage().user / 1e6);
      process.stderr.write(
        `sim: process ${index + 1} of ${of}: ${made} executions, ${cpuSeconds} s of CPU, ${violations.length} violations\n`,
      );
    },
  );
  await new Promise<void>((resolve) => process.stdout.write(`${JSON.stringify(report)}\n`, () => resolve()));
  return 0;
}

/** One shard in a process of its own. */
function start(args: readonly string[]): Promise<ShardReport> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [import.meta.filename, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const output: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
    child.once("error", reject);
    child.once("close", (code) => {
      const lines = Buffer.concat(output).toString("utf8").trimEnd().split("\n");
      const last = lines.pop() ?? "";
      for (const line of lines) process.stdout.write(`${line}\n`);
      if (code === 0) resolve(JSON.parse(last));
      else reject(new TypeError(`a process of the simulation ended with ${code}`));
    });
  });
}

async function run(values: Values): Promise<number> {
  const { seed, world, trace, json, calm } = values;
  const shards = world === undefined ? Number(values.shards ?? Math.min(4, availableParallelism())) : 1;
  const each = Math.ceil(Number(values.executions) / shards);
  const worldSize = worldSizeOf(Number(values.executions));
  const startedMs = performance.now();
  const reports = await Promise.all(
    Array.from({ length: shards }, (_none, index) =>
      start([
        ...["--shard", `${index}/${shards}`, "--seed", seed, "--executions", String(each)],
        ...["--world-size", String(worldSize)],
        ...(world === undefined ? [] : ["--world", world]),
        ...(trace ? ["--trace"] : []),
        ...(calm ? ["--calm"] : []),
      ]),
    ),
  );
  const seconds = (performance.now() - startedMs) / 1000;
  const report = runReport({ seed, shards, seconds, asked: Number(values.executions) }, mergeShards(reports));
  process.stdout.write(json ? `${JSON.stringify(report, undefined, 1)}\n` : tell(report));
  return report.violations === 0 ? 0 : 1;
}

interface Caught {
  readonly name: string;
  readonly fault: string;
  readonly by: string | null;
  readonly afterExecutions: number;
  readonly world: string | null;
}

async function hunt(mutant: Mutant, seed: string): Promise<Caught> {
  const report = await start([
    "--shard",
    "0/1",
    "--seed",
    seed,
    "--executions",
    String(mutantExecutions),
    "--mutant",
    mutant.name,
  ]);
  const [first] = report.violations;
  const { name, fault } = mutant;
  return {
    name,
    fault,
    by: first?.statement ?? null,
    afterExecutions: report.executions,
    world: first?.world ?? null,
  };
}

/** Every mutant must be caught, and what is not broken must pass. */
async function runMutants({ seed, json, shards = "2" }: Values): Promise<number> {
  const waiting = [...mutants];
  const caught: Caught[] = [];
  const lane = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const one = await hunt(mutant, seed);
      caught.push(one);
      const how =
        one.by === null
          ? "NOT CAUGHT"
          : `caught by "${one.by}" in world ${one.world}, within ${one.afterExecutions} executions`;
      if (!json) process.stdout.write(`${one.name.padEnd(24)}${how}\n`);
    }
  };
  await Promise.all(Array.from({ length: Number(shards) }, lane));
  const budget = Math.max(...caught.map(({ afterExecutions }) => afterExecutions));
  const control = await start(["--shard", "0/1", "--seed", seed, "--executions", String(budget), "--hunt"]);
  const missed = caught.filter(({ by }) => by === null).length;
  const summary = {
    mutants: caught.length,
    missed,
    control: { executions: control.executions, violations: control.violations },
    caught,
  };
  if (json) process.stdout.write(`${JSON.stringify(summary, undefined, 1)}\n`);
  else
    process.stdout.write(
      `${caught.length} mutants, ${missed} not caught; unbroken: ${control.executions} executions, ${control.violations.length} violations\n`,
    );
  return missed === 0 && control.violations.length === 0 ? 0 : 1;
}

/** Searches the model of the protocol's core, in a process of its own. */
function runModel({ json, generations }: Values): Promise<number> {
  const program = join(import.meta.dirname, "model/main.ts");
  const args = [
    ...(generations === undefined ? [] : ["--generations", generations]),
    ...(json ? ["--json"] : []),
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: "inherit" });
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 1));
  });
}

await runProgram(async () => {
  const { values } = readCommandLine({ options });
  const { executions, shards } = values;
  wholeNumber("executions", executions, 1);
  if (shards !== undefined) wholeNumber("shards", shards, 1);
  if (values.shard !== undefined) return shard(values);
  if (values.mutant !== undefined)
    throw new CommandLineError("--mutants hunts each mutant; --mutant is for its processes");
  if (values.model) return runModel(values);
  return values.mutants ? runMutants(values) : run(values);
});
