// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { Crashed } from "./event-loop.ts";
import { addShard, emptyShard, type ShardReport } from "./shard-report.ts";
import { numberOf, stackOf, World, type WorldReport } from "./world.ts";

export interface ShardOptions {
  readonly seed: string;
  /** Executions after which it begins no further world. */
  readonly executions: number;
  /** Executions of one world. */
  readonly worldSize: number;
  /** Which worlds it runs: every `of`-th, from `index` on. */
  readonly index: number;
  readonly of: number;
  /** Only this world, named as in a report. */
  readonly world: string | undefined;
  readonly trace: boolean;
  /** Nothing is struck. */
  readonly calm: boolean;
  /** A mutant is loaded: the run ends with the first violation. */
  readonly hunting: boolean;
}

const huntedExecutions = 150;
/** One world in so many uses real Ed25519: at least one execution in a hundred. Odd, so that two processes share them. */
const realKeysEvery = 81;
/** A world that comes to nothing is a fault of the simulation, not a reason to go on for ever. */
const emptyWorldsLimit = 3;
const violationsLimit = 10;

let current: World | undefined;

/**
 * Runs worlds, one after the other, in this process, whose `setImmediate` is theirs from now on. Tells after each world
 * how far it is.
 */
export function runShard(
  options: ShardOptions,
  onProgress: (soFar: ShardReport) => void,
): Promise<ShardReport> {
  return new Promise((resolve) => runWorlds(options, onProgress, resolve));
}

function runWorlds(
  options: ShardOptions,
  onProgress: (soFar: ShardReport) => void,
  done: (report: ShardReport) => void,
): void {
  Error.stackTraceLimit = options.trace ? 10 : 0; // what the product throws is judged by its code
  const realSetImmediate = takeOver();
  const report = emptyShard();
  const startedAt = process.cpuUsage();
  let number = options.index;
  let empty = 0;
  const next = (): void => {
    const name = options.world ?? `${options.seed}/${number}`;
    const realKeys = numberOf(name) % realKeysEvery === 0;
    const result = runWorld(name, realKeys && !options.hunting, options);
    addShard(report, name, realKeys, result);
    number += options.of;
    onProgress(report);
    empty = result.executions === 0 ? empty + 1 : 0;
    const isOver =
      options.world !== undefined ||
      report.executions >= options.executions ||
      empty >= emptyWorldsLimit ||
      report.violations.length >= (options.hunting ? 1 : violationsLimit);
    if (!isOver) {
      realSetImmediate(next);
      return;
    }
    const { user, system } = process.cpuUsage(startedAt);
    report.cpuMs = (user + system) / 1000;
    done(report);
  };
  realSetImmediate(next);
}

function runWorld(
  seed: string,
  realKeys: boolean,
  { trace, hunting, calm, worldSize }: ShardOptions,
): WorldReport {
  current = new World({
    seed,
    executions: hunting ? huntedExecutions : worldSize,
    realKeys,
    hunting,
    calm,
    ...(trace ? { trace: (line: string) => void process.stdout.write(`${line}\n`) } : {}),
  });
  return current.run();
}

/** What the product does outside promises happens in the world's time, and what it lets fall is the world's to judge. */
function takeOver(): typeof setImmediate {
  const realSetImmediate = globalThis.setImmediate;
  globalThis.setImmediate = ((action: (...args: unknown[]) => void, ...args: unknown[]) => {
    const { loop } = current as World; // cast: nothing of the product runs outside a world
    loop.soon(loop.current, () => action(...args));
  }) as typeof setImmediate; // cast: nobody here cancels one
  const judge = (what: string, error: unknown): void => {
    if (error instanceof Crashed || current?.loop.current?.alive === false) return;
    current?.oracle.violate("no component fails by a bug", `${what}: ${stackOf(error)}`);
  };
  process.on("unhandledRejection", (error) => judge("unhandled", error));
  process.emitWarning = (error: unknown): void => judge("warning", error);
  return realSetImmediate;
}
