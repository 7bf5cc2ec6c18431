// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// What a pause with memory costs from the API's door to its answer:
// `node packages/testing/bench/pause-bench.ts [criu|gvisor] [MEGABYTES] [ROUNDS]`. The daemon's CPU time beside the wall
// time: on a busy machine the first changes little.

import { readFileSync } from "node:fs";
import { Sandbox } from "e2b";
import { startRig } from "../src/embedded-rig.ts";

const [kind = "criu", megabytes = "64", rounds = "5"] = process.argv.slice(2);
const ticksPerSecond = 100;

/** Of all its threads, in seconds. */
function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

const rig = await startRig(kind === "gvisor" ? { substrate: "gvisor" } : { memory: "criu" });
try {
  const [daemon = 0] = rig.system.workerPids().values();
  const sandbox = await Sandbox.create({ ...rig.client(), timeoutMs: 600_000 });
  const hold = `import os,time;x=os.urandom(${megabytes}<<20);print("held",flush=True);time.sleep(9999)`;
  let held = false;
  await sandbox.commands.run(`python3 -c '${hold}'`, {
    background: true,
    timeoutMs: 0,
    onStdout: () => {
      held = true;
    },
  });
  while (!held) await new Promise((resolve) => setTimeout(resolve, 20));
  for (let round = 0; round < Number(rounds); round += 1) {
    const figures: string[] = [];
    const timed = async (what: string, act: () => Promise<unknown>): Promise<void> => {
      const [began, cpu] = [performance.now(), cpuOf(daemon)];
      await act();
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      figures.push(`${what} ${seconds} s (daemon ${(cpuOf(daemon) - cpu).toFixed(2)} s CPU)`);
    };
    await timed("pause", () => sandbox.pause());
    await timed("resume", () => Sandbox.connect(sandbox.sandboxId, { ...rig.client(), timeoutMs: 600_000 }));
    process.stdout.write(`${figures.join("  ")}\n`);
  }
} finally {
  await rig.end();
}
