// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";
import { BenchProcess } from "../bench-process.ts";
import type { Ending } from "../ending.ts";
import { cpuUse } from "../machine.ts";
import { descendants, listProcesses } from "../process-tree.ts";
import { SandboxClient, type SystemAddress, systemReadySchema } from "../sandbox-client.ts";

/** So long after a start, workers have finished preparing guests. */
const settleMs = 1_500;

export interface SystemOptions {
  readonly folder: string;
  readonly name: string;
  readonly workers: number;
  /** False: its workers verify nothing. */
  readonly checked: boolean;
  /** By default `namespace`, whose memory stays frozen on its worker. */
  readonly substrate?: "namespace" | "gvisor";
  readonly memory?: "frozen" | "criu";
}

/** The processes of one system, by role. */
export interface SystemProcesses {
  /** Gateway, API and control plane. */
  readonly gateway: readonly number[];
  readonly worker: readonly number[];
  readonly bridge: readonly number[];
  readonly launcher: readonly number[];
  /** Each guest's pid 1, those that are only prepared included. */
  readonly guest: readonly number[];
}

/** A whole SPACE in processes of its own. */
export class BenchmarkedSystem {
  readonly process: BenchProcess;
  readonly address: SystemAddress;

  static async start(options: SystemOptions, ending: Ending): Promise<BenchmarkedSystem> {
    const { folder, name, substrate = "namespace", memory = "frozen", ...rest } = options;
    const config = { data: join(folder, `${name}-data`), substrate, memory, ...rest };
    const { process, ready } = await BenchProcess.start({ name, entry: "system-main.ts", config, folder });
    ending.add(() => process.stop());
    return new BenchmarkedSystem(process, v.parse(systemReadySchema, ready));
  }

  private constructor(process: BenchProcess, address: SystemAddress) {
    this.process = process;
    this.address = address;
  }

  client(): Promise<SandboxClient> {
    return SandboxClient.open(this.address);
  }

  /** CPU seconds so far of SPACE's own processes, guests that have ended included; those of the load and of others not. */
  cpuSeconds(): number {
    const { gateway, worker, bridge, launcher } = this.processes();
    const launchers = launcher.map((pid) => cpuUse(pid).withChildren);
    const others = [...gateway, ...worker, ...bridge].map((pid) => cpuUse(pid).own);
    return [...launchers, ...others].reduce((sum, each) => sum + each, 0);
  }

  settled(): Promise<void> {
    return pause(settleMs);
  }

  processes(): SystemProcesses {
    const all = descendants(this.process.pid, listProcesses());
    const running = (part: string): readonly number[] =>
      all.filter(({ command }) => command.some((text) => text.endsWith(part))).map(({ pid }) => pid);
    const launcher = running("/spaced-launch");
    const bridge = running("/bridge/host-main.ts");
    const guest = all
      .filter(
        ({ pid, parent }) => launcher.includes(parent) && !bridge.includes(pid) && !launcher.includes(pid),
      )
      .map(({ pid }) => pid);
    const worker = [...running("/worker/worker-main.ts"), ...running("/unchecked-worker-main.ts")];
    return { gateway: [this.process.pid], worker, bridge, launcher, guest };
  }
}
