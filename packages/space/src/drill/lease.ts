// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { parseSandboxId, Secret, type WorkerId } from "@space/model";
import { FrameLink } from "@space/wire";
import { Sandbox } from "e2b";
import { UnsoundRun } from "../bench/unsound.ts";
import { type Presented, presentOver } from "../demo/worker-probe.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { type Beats, Recorder } from "./recorder.ts";

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
  /** from the record of the loss to the last act of the old generation or its last admitted request; 0: none after it. */
  readonly r15WindowMs: number;
}

const beat = "while :; do date +%s%3N; sleep 0.1; done | tee -a /home/user/beat";
const lookEveryMs = 100;
const recoverLimitMs = 180_000;
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
  const sandbox = await sandboxWithSnapshot(system, oldWorker);
  using recorder = new Recorder(data);
  const stream = await follow(sandbox);
  const present = await oldCaller(system, sandbox.sandboxId, oldWorker);
  if ((await present()) !== "match") throw new UnsoundRun("the capability is not admitted to begin with");
  await pause(2000);
  const stoppedMs = systemClock.wallMs();
  process.kill(pid, "SIGSTOP");
  let lostMs: number;
  try {
    lostMs = await recovered(system, sandbox.sandboxId);
    await followSoon(await Sandbox.connect(sandbox.sandboxId, clientOf(system)));
    await pause(Math.max(0, stopSeconds * 1000 - (systemClock.wallMs() - stoppedMs)));
  } finally {
    process.kill(pid, "SIGCONT");
  }
  const asked = await askAgain(present);
  const beats = recorder.beats();
  await Sandbox.kill(sandbox.sandboxId, clientOf(system));
  return reportOf({ stopSeconds, stoppedMs, lostMs, beats, stream, asked });
}

function clientOf(system: EmbeddedSystem) {
  const { apiUrl, domain } = system;
  return { apiUrl, sandboxUrl: apiUrl, apiKey: system.apiKey.reveal(), domain };
}

/** One that is to be recovered, with a snapshot, running on this worker. */
async function sandboxWithSnapshot(system: EmbeddedSystem, workerID: WorkerId): Promise<Sandbox> {
  const options = { ...clientOf(system), timeoutMs: 3_600_000 };
  const metadata = { "space.auto-recover": "true" };
  const { sandboxId } = await Sandbox.create("base", { ...options, metadata });
  await Sandbox.pause(sandboxId, options);
  const answer = await fetch(`${system.apiUrl}/v2/sandboxes/${sandboxId}/connect`, {
    method: "POST",
    headers: { "x-api-key": options.apiKey, "content-type": "application/json" },
    body: JSON.stringify({ timeout: 3600, workerID }),
  });
  if (answer.status !== 201) throw new UnsoundRun(`resume: ${answer.status} ${await answer.text()}`);
  return Sandbox.connect(sandboxId, options);
}

/** When its caller got how much of what the program says. */
type Stream = readonly { readonly atMs: number; readonly bytes: number }[];

async function follow(sandbox: Sandbox): Promise<Stream> {
  const stream: { atMs: number; bytes: number }[] = [];
  const handle = await sandbox.commands.run(beat, {
    background: true,
    timeoutMs: 0,
    onStdout: (text) => void stream.push({ atMs: systemClock.wallMs(), bytes: text.length }),
  });
  handle.wait().catch(() => undefined); // it ends with its generation: how is other drills' matter
  return stream;
}

/** The gateway may still hold the route to the worker that stands still: its caller tries again. */
async function followSoon(sandbox: Sandbox): Promise<void> {
  const untilMs = systemClock.monotonicMs() + recoverLimitMs;
  for (;;) {
    try {
      await follow(sandbox);
      return;
    } catch (error) {
      if (systemClock.monotonicMs() > untilMs) throw error;
      await pause(lookEveryMs);
    }
  }
}

/** Presents a capability of the generation that runs now to its worker, over a link that is open from now on. */
async function oldCaller(
  system: EmbeddedSystem,
  sandboxId: string,
  workerId: WorkerId,
): Promise<() => Promise<string>> {
  const answer = await fetch(`${system.apiUrl}/v2/sandboxes/${sandboxId}/connect`, {
    method: "POST",
    headers: { "x-api-key": system.apiKey.reveal(), "content-type": "application/json" },
    body: "{}",
  });
  const { envdAccessToken } = (await answer.json()) as { envdAccessToken: string }; // cast: our own API's answer
  const id = parseSandboxId(sandboxId);
  const resolved = await system.routes.resolve({
    sandboxId: id,
    credential: { kind: "access-token", token: new Secret(envdAccessToken) },
    wanted: { purpose: "control", scope: "files:read" },
    presenter: system.presenter,
  });
  if (resolved.kind !== "entry") throw new UnsoundRun(`no route: ${resolved.kind}`);
  const link = new FrameLink(await system.dialWorker(workerId), { dialled: true });
  const { capability } = resolved.entry;
  const presented: Presented = {
    sandbox: id,
    capability,
    target: { purpose: "control" },
    path: "/files?path=/home/user/beat",
  };
  return () =>
    presentOver(link, presented, systemRandom).then(
      ({ verdict }) => verdict,
      () => "broken",
    );
}

/** When the sandbox was first seen to run as another generation. Its loss was recorded before. */
async function recovered(system: EmbeddedSystem, sandboxId: string): Promise<number> {
  const untilMs = systemClock.monotonicMs() + recoverLimitMs;
  let lostMs: number | undefined;
  while (systemClock.monotonicMs() < untilMs) {
    const answer = await fetch(`${system.apiUrl}/sandboxes/${sandboxId}`, {
      headers: { "x-api-key": system.apiKey.reveal() },
    });
    const body = (await answer.json()) as { space?: { recoveredFrom: string | null } }; // cast: our own API's answer
    if (answer.status === 410 || body.space?.recoveredFrom != null) lostMs ??= systemClock.wallMs();
    if (lostMs !== undefined && body.space?.recoveredFrom != null) return lostMs;
    await pause(lookEveryMs);
  }
  throw new UnsoundRun("the sandbox was not recovered");
}

interface Asked {
  readonly requests: number;
  readonly admitted: number;
  readonly lastAdmittedMs: number;
}

async function askAgain(present: () => Promise<string>): Promise<Asked> {
  const untilMs = systemClock.monotonicMs() + afterMs;
  let [requests, admitted, lastAdmittedMs] = [0, 0, 0];
  while (systemClock.monotonicMs() < untilMs) {
    requests += 1;
    if ((await present()) === "match") {
      admitted += 1;
      lastAdmittedMs = systemClock.wallMs();
    }
    await pause(10);
  }
  return { requests, admitted, lastAdmittedMs };
}

function reportOf(run: {
  readonly stopSeconds: number;
  readonly stoppedMs: number;
  readonly lostMs: number;
  readonly beats: Beats;
  readonly stream: Stream;
  readonly asked: Asked;
}): LeaseDrillReport {
  const { stopSeconds, stoppedMs, lostMs, beats, stream, asked } = run;
  const [oldBeats = [], newBeats = []] = beats;
  const lastOldMs = oldBeats.at(-1) ?? 0;
  const firstNewMs = newBeats[0] ?? 0;
  const late = stream.filter(({ atMs }) => atMs >= firstNewMs);
  const lateStreamBytes = late.reduce((sum, { bytes }) => sum + bytes, 0);
  const wasSeen =
    oldBeats.length > 10 && newBeats.length > 10 && lastOldMs > stoppedMs && asked.requests > 10;
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
    r15WindowMs: Math.max(0, Math.max(lastOldMs, asked.lastAdmittedMs) - lostMs),
  };
}
