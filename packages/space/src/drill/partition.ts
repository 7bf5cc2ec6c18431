// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { RouteEntry } from "@space/model";
import { UnsoundRun } from "../bench/unsound.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import type { NetworkApart } from "./network-apart.ts";
import type { Asked } from "./old-caller.ts";
import { Owner } from "./owner.ts";
import { ProcessChannel } from "./process-channel.ts";
import { type Beats, Recorder } from "./recorder.ts";
import {
  entryNow,
  followBeats,
  type RanAgain,
  type Received,
  recoverableSandbox,
  recovered,
  startBeats,
} from "./recovery-scene.ts";
import { becomes } from "./waiting.ts";

export interface PartitionOptions {
  readonly leaseSeconds: number;
  /** How long the first worker is cut off. */
  readonly cutSeconds: number;
}

export interface PartitionReport {
  readonly drill: "partition";
  readonly ok: boolean;
  readonly leaseSeconds: number;
  readonly cutSeconds: number;
  /** Acts of the sandbox that was recovered elsewhere: by its old generation and by its new one. */
  readonly oldActs: number;
  readonly newActs: number;
  /** After the cut: the last act of the old generation, the last request that its worker admitted for it, the first act of the new one. */
  readonly lastOldActMs: number;
  readonly lastOldAdmittedMs: number;
  readonly firstNewActMs: number;
  /** Bytes of the old generation's stream that its caller got after the first act of the new one. */
  readonly lateStreamBytes: number;
  /** How the recovered sandbox's caller was answered until something ran there, and how long that took. */
  readonly answers: Readonly<Record<string, number>>;
  readonly servedAgainMs: number;
  /** a sandbox that was killed while its worker could not hear of it went on acting, or being admitted, for so long. */
  readonly r15WindowMs: number;
  readonly r15LimitMs: number;
  /** Requests with unexpired capabilities for both that were presented on the worker's side of the cut, before and after. */
  readonly oldRequests: number;
  /** After the links were up again: how long until nothing of the old generations was left on the worker. */
  readonly clearedMs: number;
}

/** What is cut apart, and where the system in it keeps its data. */
export interface PartitionStage {
  readonly system: EmbeddedSystem;
  readonly network: NetworkApart;
  readonly data: string;
}

const actsLeast = 10;
const beforeMs = 2000;
const afterMs = 5000;
const dialLimitMs = 1000;
/** what a deadline may be missed by, until the last guest stands still. */
const fencingMs = 1000;
const clearWait = { limitMs: 60_000, lookEveryMs: 50 };

/**
 * Cuts one worker off from everything (the links between the network namespaces go down) while programs beat in two of its
 * sandboxes, and somebody on its side of the cut goes on asking for them. One is recovered on the other worker; one is
 * killed. Then the links come up again. A recorder outside of all sees when each generation acts.
 */
export async function drillPartition(
  stage: PartitionStage,
  options: PartitionOptions,
): Promise<PartitionReport> {
  const { system, network, data } = stage;
  const [oldWorker] = system.workerIds;
  if (oldWorker === undefined || system.workerIds.length < 2)
    throw new UnsoundRun("the drill needs two workers");
  const owner = new Owner(system);
  const moved = await recoverableSandbox(system, oldWorker);
  const killed = await recoverableSandbox(system, oldWorker);
  using movedBeats = new Recorder(data, "beat");
  using killedBeats = new Recorder(data, "last-beat");
  const received = await followBeats(system, moved, "beat");
  await startBeats(system, killed, "last-beat");
  const entries = [await entryNow(system, moved), await entryNow(system, killed)];
  await using old = await OldCallers.begin(stage, entries);
  await pause(beforeMs);
  network.cut();
  const cutMs = systemClock.wallMs();
  let again: RanAgain;
  try {
    await requireSilence(entries);
    const killing = owner.kill(killed);
    await recovered(system, moved);
    again = await startBeats(system, moved, "beat");
    await killing;
    await pause(Math.max(0, options.cutSeconds * 1000 - (systemClock.wallMs() - cutMs)));
  } finally {
    network.heal();
  }
  const healedMs = systemClock.monotonicMs();
  const isClear = await becomes(() => system.guestsLeft() === 1, clearWait);
  const clearedMs = isClear ? systemClock.monotonicMs() - healedMs : Number.POSITIVE_INFINITY;
  await pause(afterMs);
  const asked = await old.tallies();
  const beats = { moved: movedBeats.beats(), killed: killedBeats.beats() };
  await owner.kill(moved);
  return reportOf({ options, cutMs, beats, received, asked, again, clearedMs });
}

interface Run {
  readonly options: PartitionOptions;
  readonly cutMs: number;
  readonly beats: { readonly moved: Beats; readonly killed: Beats };
  readonly received: Received;
  /** Of the sandbox that was recovered, and of the one that was killed. */
  readonly asked: readonly Asked[];
  readonly again: RanAgain;
  readonly clearedMs: number;
}

function reportOf(run: Run): PartitionReport {
  const { options, cutMs, beats, received, asked, again, clearedMs } = run;
  const [oldBeats = [], newBeats = []] = beats.moved;
  const [killedBeats = []] = beats.killed;
  const [movedAsked = nothingAsked, killedAsked = nothingAsked] = asked;
  const [lastOldMs, firstNewMs] = [oldBeats.at(-1) ?? 0, newBeats[0] ?? 0];
  const lastKilledMs = Math.max(killedBeats.at(-1) ?? 0, killedAsked.lastAdmittedMs);
  const late = received.filter(({ atMs }) => atMs >= firstNewMs);
  const lateStreamBytes = late.reduce((sum, { bytes }) => sum + bytes, 0);
  const r15LimitMs = options.leaseSeconds * 1000 + fencingMs;
  const wasSeen =
    [oldBeats, newBeats, killedBeats].every(({ length }) => length > actsLeast) &&
    [lastOldMs, lastKilledMs, movedAsked.lastAdmittedMs].every((ms) => ms > cutMs);
  const isApart =
    lastOldMs < firstNewMs &&
    movedAsked.lastAdmittedMs < firstNewMs &&
    lateStreamBytes === 0 &&
    beats.moved.length === 2;
  const r15WindowMs = lastKilledMs - cutMs;
  return {
    drill: "partition",
    ok: wasSeen && isApart && r15WindowMs <= r15LimitMs && Number.isFinite(clearedMs),
    ...options,
    oldActs: oldBeats.length,
    newActs: newBeats.length,
    lastOldActMs: lastOldMs - cutMs,
    lastOldAdmittedMs: movedAsked.lastAdmittedMs - cutMs,
    firstNewActMs: firstNewMs - cutMs,
    lateStreamBytes,
    answers: again.answers,
    servedAgainMs: Math.round(again.afterMs),
    r15WindowMs,
    r15LimitMs,
    oldRequests: movedAsked.requests + killedAsked.requests,
    clearedMs: Math.round(clearedMs),
  };
}

const nothingAsked: Asked = { requests: 0, admitted: 0, lastAdmittedMs: 0 };

/** The fault has landed: what is sent to the worker is lost, without a word. Throws {@link UnsoundRun}. */
async function requireSilence([entry]: readonly RouteEntry[]): Promise<void> {
  const { host, port } = entry?.route.endpoint ?? { host: "", port: 0 };
  const socket = connect(port, host);
  const answered = Promise.race([
    once(socket, "connect").then(
      () => "connected",
      (error: unknown) => String(error),
    ),
    pause(dialLimitMs, "silent"),
  ]);
  const how = await answered;
  socket.destroy();
  if (how !== "silent") throw new UnsoundRun(`the worker is not cut off: ${how}`);
}

/** Callers in the worker's own network namespace, who present what they held before the cut. */
class OldCallers implements AsyncDisposable {
  readonly #child: ReturnType<typeof spawn>;
  readonly #channel: ProcessChannel;

  static async begin({ network, data }: PartitionStage, entries: readonly RouteEntry[]): Promise<OldCallers> {
    const callers = new OldCallers(network, data);
    await callers.#channel.ask("begin", entries);
    return callers;
  }

  private constructor(network: NetworkApart, data: string) {
    const main = join(import.meta.dirname, "old-caller-main.ts");
    const [program = "", ...before] = network.enterWorkers;
    this.#child = spawn(program, [...before, process.execPath, main, data], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.#channel = new ProcessChannel(
      {
        on: (event, listener) => this.#child.on(event, listener),
        send: (message) => this.#child.send(message),
      },
      {},
    );
    this.#child.once("exit", () => this.#channel.close("the old callers have ended"));
  }

  tallies(): Promise<readonly Asked[]> {
    return this.#channel.ask("tallies") as Promise<readonly Asked[]>; // cast: our own program's word
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.disconnect();
    await ended;
  }
}
