// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The model's own process: `./space sim --model` starts it, and it starts one for each planted fault. See README.md.

import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import { prepareLoading } from "../loader.ts";
import { type HuntedFault, isSound, type ModelReport, tellModel } from "./model-report.ts";
import { type PlantedFault, plantedFaults } from "./planted-faults.ts";

const options = {
  json: { type: "boolean", default: false },
  generations: { type: "string", default: "3" },
  /** For the processes that this one starts: hunts that planted fault alone. */
  fault: { type: "string" },
} as const;

/** In this very process: the product is loaded with the fault in it. */
async function huntHere(name: string): Promise<HuntedFault> {
  const planted = plantedFaults.find((candidate) => candidate.name === name);
  if (planted === undefined) throw new TypeError(`there is no planted fault ${name}`);
  const { fault, generations, leavesOut, edits } = planted;
  if (edits.length > 0) prepareLoading(planted);
  const { huntFault } = await import("./model-search.ts");
  return { name, fault, generations, found: (await huntFault(generations, leavesOut)) ?? null };
}

function hunt({ name }: PlantedFault): Promise<HuntedFault> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [import.meta.filename, "--fault", name], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const output: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(JSON.parse(Buffer.concat(output).toString("utf8")));
      else reject(new TypeError(`the hunt for ${name} ended with ${code}`));
    });
  });
}

async function search(generations: number): Promise<ModelReport> {
  if (![1, 2, 3].includes(generations)) throw new TypeError("a model has 1, 2 or 3 generations");
  const { searchModel } = await import("./model-search.ts");
  const startedMs = performance.now();
  const found = await searchModel(generations);
  const seconds = (performance.now() - startedMs) / 1000;
  const residentBytes = process.resourceUsage().maxRSS * 1024;
  const planted: HuntedFault[] = [];
  for (const fault of plantedFaults) planted.push(await hunt(fault));
  return { workers: 2, gateways: 2, generations, seconds, residentBytes, ...found, planted };
}

const { values } = parseArgs({ options, strict: true });
if (values.fault === undefined) {
  const report = await search(Number(values.generations));
  process.stdout.write(values.json ? `${JSON.stringify(report, undefined, 1)}\n` : tellModel(report));
  process.exitCode = isSound(report) ? 0 : 1;
} else process.stdout.write(`${JSON.stringify(await huntHere(values.fault))}\n`);
