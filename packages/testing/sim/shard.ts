// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { Crashed } from "./event-loop.ts";
import { stackOf, World } from "./world.ts";

let current: World | undefined;

export interface ShardOptions {
  readonly seed: string;
  readonly executions: number;
  readonly world: string | undefined;
  readonly trace: boolean;
}

const executionsPerWorld = 150;

export function runShard({ seed, executions, world: only, trace }: ShardOptions): void {
  const realSetImmediate = globalThis.setImmediate;
  globalThis.setImmediate = ((action: (...args: unknown[]) => void, ...args: unknown[]) => {
    const { loop } = current as World; // cast: nothing of the product runs outside a world
    loop.soon(loop.current, () => action(...args));
  }) as typeof setImmediate; // cast: nobody here cancels one
  const isOurs = (error: unknown): boolean =>
    error instanceof Crashed || current?.loop.current?.alive === false;
  process.on("unhandledRejection", (error) => {
    if (!isOurs(error))
      current?.oracle.violate("no component fails by a bug", `unhandled: ${stackOf(error)}`);
  });
  process.emitWarning = (error: unknown): void => {
    if (!isOurs(error)) current?.oracle.violate("no component fails by a bug", `warning: ${stackOf(error)}`);
  };
  let done = 0;
  let number = 0;
  const started = process.cpuUsage();
  realSetImmediate(function next() {
    const name = only ?? `${seed}/${number}`;
    current = new World({
      seed: name,
      executions: executionsPerWorld,
      realKeys: number % 50 === 0 && only === undefined,
      ...(trace ? { trace: (line: string) => void process.stdout.write(`${line}\n`) } : {}),
    });
    const report = current.run();
    done += report.executions;
    number += 1;
    for (const violation of report.violations)
      process.stdout.write(
        `${name} after ${violation.executions} executions, step ${violation.step}: ${violation.statement}: ${violation.problem}\n`,
      );
    if (only === undefined && done < executions) return realSetImmediate(next);
    const cpu = process.cpuUsage(started);
    const ms = (cpu.user + cpu.system) / 1000;
    process.stdout.write(`${number} worlds, ${done} executions, ${(ms / done).toFixed(3)} ms each\n`);
    process.stdout.write(
      `${JSON.stringify(report.faults.toJson())}\n${JSON.stringify(report.rates, (_k, v) => (v instanceof Map ? Object.fromEntries(v) : v))} steps ${report.steps} virtual ${report.virtualMs}\n`,
    );
    process.exit(0);
  });
}
