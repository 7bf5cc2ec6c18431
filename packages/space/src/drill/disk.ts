// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isSpaceError } from "@space/model";
import { withEnding } from "../bench/ending.ts";
import { UnsoundRun } from "../bench/unsound.ts";
import { type EmbeddedSystem, startEmbedded } from "../embedded/embedded-system.ts";
import { checkout } from "../product.ts";
import { Caller, type SandboxAddress } from "./caller.ts";
import { drillOptions } from "./drill-system.ts";
import { type Outcome, readOutcome, runOutcome } from "./outcome.ts";
import { Owner } from "./owner.ts";

export interface DiskReport {
  readonly drill: "disk";
  readonly ok: boolean;
  /** Starts with the old copy of the worker's disk, and those of them that were refused because of it. */
  readonly starts: number;
  readonly refused: number;
  /** The worker's name before, and after it was enrolled anew. */
  readonly workerBefore: string;
  readonly workerAfter: string;
  /** What the sandbox's file says after that: `second` was written last, and is not on the old disk. */
  readonly file: string;
}

const starts = 2;
const filePath = "/home/user/said";

/**
 * Gives a worker a copy of its own disk from before what ran last, as a restored backup or a cloned machine would have it,
 * and then lets it enrol anew. What its sandbox wrote meanwhile must not be forgotten.
 */
export function drillDisk(): Promise<DiskReport> {
  return withEnding(async (ending) => {
    const data = mkdtempSync(join(tmpdir(), "space-drill-"));
    ending.add(() => rmSync(data, { recursive: true, force: true }));
    let stop = (): Promise<void> => Promise.resolve();
    ending.add(() => stop());
    const run = async <T>(work: (system: EmbeddedSystem) => Promise<T>): Promise<T> => {
      const system = await startEmbedded(drillOptions(data));
      let stopped: Promise<void> | undefined;
      stop = () => {
        stopped ??= system.stop();
        return stopped;
      };
      try {
        return await work(system);
      } finally {
        await stop();
      }
    };
    const [disk, copy] = [join(data, "workers/1"), join(data, "old-disk")];
    const sandbox = await run(async (system) => {
      const created = await new Owner(system).create();
      await say(system, created, "first");
      return created;
    });
    cpSync(disk, copy, { recursive: true });
    const workerBefore = await run(async (system) => {
      await new Owner(system).resume(sandbox);
      await say(system, sandbox, "second");
      return workerOf(system);
    });
    rmSync(disk, { recursive: true });
    cpSync(copy, disk, { recursive: true });
    let refused = 0;
    for (let start = 0; start < starts; start += 1) if (await isRefused(run)) refused += 1;
    enrolAnew(data);
    const after = await run(async (system) => {
      await new Owner(system).resume(sandbox);
      return { worker: workerOf(system), file: await said(system, sandbox) };
    });
    return {
      drill: "disk",
      ok: refused === starts && after.worker !== workerBefore && after.file === "second",
      starts,
      refused,
      workerBefore,
      workerAfter: after.worker,
      file: after.file,
    };
  });
}

/** Whether the start fails for the reason that it has to. Any other failure is the drill's. */
async function isRefused(run: (work: () => Promise<void>) => Promise<void>): Promise<boolean> {
  try {
    await run(() => Promise.resolve());
    return false;
  } catch (error) {
    if (isSpaceError(error, "host/unfit") && error.details.remedy.includes("workers enrol worker-1"))
      return true;
    throw error;
  }
}

function enrolAnew(data: string): void {
  const command = [
    join(checkout, "packages/space/src/main.ts"),
    "workers",
    "enrol",
    "worker-1",
    "--data",
    data,
  ];
  execFileSync(process.execPath, command, { stdio: ["ignore", "ignore", "inherit"] });
}

function workerOf({ workerIds }: EmbeddedSystem): string {
  const [workerId] = workerIds;
  if (workerId === undefined) throw new UnsoundRun("no worker");
  return workerId;
}

async function say(system: EmbeddedSystem, sandbox: SandboxAddress, what: string): Promise<void> {
  const write = ["-c", `printf ${what} >${filePath}; sync`];
  served(await withCaller(system, (caller) => caller.start(sandbox, "/bin/sh", write).then(runOutcome)));
}

function said(system: EmbeddedSystem, sandbox: SandboxAddress): Promise<string> {
  const path = `/files?path=${encodeURIComponent(filePath)}&username=user`;
  return withCaller(system, (caller) => caller.get(sandbox, path).then(readOutcome)).then(served);
}

function served(outcome: Outcome): string {
  if (outcome.kind === "served") return outcome.text;
  throw new UnsoundRun(`not served: ${outcome.what}`);
}

async function withCaller<T>(system: EmbeddedSystem, work: (caller: Caller) => Promise<T>): Promise<T> {
  const caller = new Caller(system.apiUrl);
  try {
    return await work(caller);
  } finally {
    caller.close();
  }
}
