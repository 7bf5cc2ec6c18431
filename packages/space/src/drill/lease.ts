// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { FrameLink } from "@space/wire";
import { UnsoundRun } from "../bench/unsound.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { type Asked, presentFor } from "./old-caller.ts";
import { Owner } from "./owner.ts";
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

export interface LeaseDrillOptions {
  /** Where the system keeps its data: the recorder reads guests' files from outside. */
  readonly data: string;
  /** How long the first worker's daemon stands still. */
  readonly stopSeconds: number;
}

export interface LeaseDrillReport {
  readonly drill: "lease";
  readonly ok: boolean;
  readonly stopSeconds: number;
  /** Acts of each generation that the recorder saw. */
  readonly oldActs: number;
  readonly newActs: number;
  /** After the daemon was stopped: the last act of the old generation, and the first of the new one. */
  readonly lastOldActMs: number;
  readonly firstNewActMs: number;
  /** Bytes of the old generation's stream that its caller got after the first act of the new one. */
  readonly lateStreamBytes: number;
  /** Requests with an unexpired capability for the old generation after the daemon went on; and how many were admitted. */
  readonly oldRequests: number;
  readonly oldAdmitted: number;
  /** How the recovered sandbox's caller was answered until something ran there, and how long that took. */
  readonly answers: Readonly<Record<string, number>>;
  readonly servedAgainMs: number;
  /** from the record of the loss to the last act of the old generation or its last admitted request; 0: none after it. */
  readonly r15WindowMs: number;
}

const actsLeast = 10;
const beforeMs = 2000;
const afterMs = 10_000;

/**
 * Stops a worker's daemon (SIGSTOP) while a program beats in its sandbox and a caller reads what it says; lets the sandbox
 * be recovered on the other worker; lets the daemon go on. A recorder outside of both sees when each generation acts.
 */
export async function drillLease(
  system: EmbeddedSystem,
  { data, stopSeconds }: LeaseDrillOptions,
): Promise<LeaseDrillReport> {
  const [oldWorker] = system.workerIds;
  const pid = oldWorker === undefined ? undefined : system.workerPids().get(oldWorker);
  if (oldWorker === undefined || pid === undefined || system.workerIds.length < 2)
    throw new UnsoundRun("the drill needs two workers");
  const sandbox = await recoverableSandbox(system, oldWorker);
  using recorder = new Recorder(data, "beat");
  const received = await followBeats(system, sandbox, "beat");
  const entry = await entryNow(system, sandbox);
  // Open from now on: a daemon that stands still takes no new ones.
  const link = new FrameLink(await system.dialWorker(oldWorker), { dialled: true });
  const before = await presentFor(beforeMs, { link, entry });
  if (before.admitted === 0) throw new UnsoundRun("the capability is not admitted to begin with");
  const stoppedMs = systemClock.wallMs();
  process.kill(pid, "SIGSTOP");
  let lostMs: number;
  let again: RanAgain;
  try {
    lostMs = await recovered(system, sandbox);
    again = await startBeats(system, sandbox, "beat");
    await pause(Math.max(0, stopSeconds * 1000 - (systemClock.wallMs() - stoppedMs)));
  } finally {
    process.kill(pid, "SIGCONT");
  }
  const asked = await presentFor(afterMs, { link, entry });
  link.destroy(undefined);
  const beats = recorder.beats();
  await new Owner(system).kill(sandbox);
  return reportOf({ stopSeconds, stoppedMs, lostMs, beats, received, asked, again });
}

function reportOf(run: {
  readonly stopSeconds: number;
  readonly stoppedMs: number;
  readonly lostMs: number;
  readonly beats: Beats;
  readonly received: Received;
  readonly asked: Asked;
  readonly again: RanAgain;
}): LeaseDrillReport {
  const { stopSeconds, stoppedMs, lostMs, beats, received, asked, again } = run;
  const [oldBeats = [], newBeats = []] = beats;
  const lastOldMs = oldBeats.at(-1) ?? 0;
  const firstNewMs = newBeats[0] ?? 0;
  const late = received.filter(({ atMs }) => atMs >= firstNewMs);
  const lateStreamBytes = late.reduce((sum, { bytes }) => sum + bytes, 0);
  const wasSeen =
    oldBeats.length > actsLeast &&
    newBeats.length > actsLeast &&
    lastOldMs > stoppedMs &&
    asked.requests > actsLeast;
  const isApart = lastOldMs < firstNewMs && lateStreamBytes === 0 && asked.admitted === 0;
  return {
    drill: "lease",
    ok: wasSeen && isApart,
    stopSeconds,
    oldActs: oldBeats.length,
    newActs: newBeats.length,
    lastOldActMs: lastOldMs - stoppedMs,
    firstNewActMs: firstNewMs - stoppedMs,
    lateStreamBytes,
    oldRequests: asked.requests,
    oldAdmitted: asked.admitted,
    answers: again.answers,
    servedAgainMs: Math.round(again.afterMs),
    r15WindowMs: Math.max(0, Math.max(lastOldMs, asked.lastAdmittedMs) - lostMs),
  };
}
