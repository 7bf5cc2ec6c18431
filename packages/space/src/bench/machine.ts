// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { arch, availableParallelism, release, totalmem } from "node:os";

/** The unit of the times in /proc: a hundredth of a second on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** What a reader must know of the machine to judge a figure. Nothing that names it. */
export interface MachineFacts {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly architecture: string;
  readonly kernel: string;
  readonly node: string;
}

export function machineFacts(): MachineFacts {
  return {
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    architecture: arch(),
    kernel: release().split("-", 1)[0] ?? "",
    node: process.version,
  };
}

/** Seconds of work that all cores together have done since the machine started. */
export function busySeconds(): number {
  return parseBusySeconds(readFileSync("/proc/stat", "latin1"));
}

/** Everything but idle and waiting for disks; what a hypervisor took away counts, since nobody here can use it. */
export function parseBusySeconds(stat: string): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = (stat.split("\n", 1)[0] ?? "")
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) / ticksPerSecond;
}

/** One process, or several together, between two looks at it. */
export interface CpuUse {
  /** Seconds of CPU of the process itself. */
  readonly own: number;
  /** And of the children that it has waited for. */
  readonly withChildren: number;
}

/** Zero for a process that is gone. */
export function cpuUse(pid: number): CpuUse {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number);
    const own = (user + system) / ticksPerSecond;
    return { own, withChildren: own + (childUser + childSystem) / ticksPerSecond };
  } catch {
    return { own: 0, withChildren: 0 };
  }
}

/** Proportional share of memory: pages that several processes map count by their part. Undefined when it cannot be read. */
export function proportionalBytes(pid: number): number | undefined {
  try {
    const match = /^Pss:\s+([0-9]+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"));
    return match === null ? undefined : Number(match[1]) * 1024;
  } catch {
    return undefined;
  }
}
