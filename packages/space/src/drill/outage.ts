// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { UnsoundRun } from "../bench/unsound.ts";
import { systemClock } from "../host/system-clock.ts";
import { type BoundedRate, boundedRate } from "./bounded-rate.ts";
import type { Caller, SandboxAddress } from "./caller.ts";
import type { ApartStage } from "./control-apart.ts";
import { CountingStream } from "./counting-stream.ts";
import { isStopped } from "./is-stopped.ts";
import { countOne, namedSandboxes, readName } from "./named-sandboxes.ts";
import { Owner } from "./owner.ts";
import { SteadyLoad } from "./steady-load.ts";
import { WorkerConnections } from "./tcp-connections.ts";

export interface OutageOptions {
  readonly outageSeconds: number;
  /** Three of four ask sandboxes whose entries are fresh when the outage begins; the others, of entries of any age. */
  readonly callers: number;
  /** For how long before the outage streams are opened, one after the other. */
  readonly rampSeconds: number;
  /** Each with a sandbox of its own. */
  readonly streams: number;
  /** A caller's rest between two requests. */
  readonly paceMs: number;
}

export interface OutageReport {
  readonly drill: "outage";
  readonly ok: boolean;
  /** How long the control plane's process stood still. */
  readonly outageSeconds: number;
  /** Requests that began while it did, on entries that lived; and those of them that were not served, or served wrong. */
  readonly liveRequests: number;
  readonly failed: BoundedRate;
  readonly failures: Readonly<Record<string, number>>;
  readonly slowestMs: number;
  /** Questions to the control plane about sandboxes whose entries were fresh, while it stood still. */
  readonly asked: number;
  /** Other questions at that time: entries renewed ahead of their end, and streams' callers checked. No request waited for them. */
  readonly askedAhead: number;
  /** Segments that the workers sent to the control plane meanwhile (leases, answers to pings), and connections to anybody else. */
  readonly workerSegments: number;
  readonly workersToOthers: number;
  /** Requests whose entry had ended, by what became of them: they had to wait for the control plane. */
  readonly endedEntries: Readonly<Record<string, number>>;
  readonly streams: number;
  /** Streams that ended, had to go on over another connection, or do not say every number once and in order. */
  readonly streamsCut: number;
  readonly longestSilenceMs: number;
  /** Requests that began after the outage, and were not served. */
  readonly failedAfterwards: BoundedRate;
}

interface Tally {
  phase: "before" | "outage" | "after";
  live: number;
  slowestMs: number;
  after: number;
  failedAfter: number;
  readonly failures: Record<string, number>;
  readonly endedEntries: Record<string, number>;
}

const freshSandboxes = 4;
const agedSandboxes = 2;
const freshEvery = 4;
/** How long before the outage the fresh entries are made. */
const freshMs = 3000;
/** And those of any age: they are renewed within the outage, which fails, and end in it when it is long. */
const agedMs = 37_000;
const afterMs = 15_000;
/** An entry in use is renewed when it is this old: a longer outage is none for entries that are fresh when it begins. */
const longestSeconds = 40;
/** A request that began so shortly before its entry's end may come after it. */
const edgeMs = 250;
const lookEveryMs = 500;
const silenceLimitMs = 5000;
/** How many segments of the workers' may go to the control plane in an outage, for one that a request might have caused. */
const segmentsPerSecond = 2;

/**
 * Stops the control plane's process (SIGSTOP) under load, with default settings, and lets it go on: whether any request
 * on a live entry fails, any stream is cut, or anything asked another machine.
 */
export async function drillOutage(stage: ApartStage, options: OutageOptions): Promise<OutageReport> {
  const { control, served, routes } = stage;
  if (options.outageSeconds > longestSeconds)
    throw new UnsoundRun(`entries are renewed within ${longestSeconds} s of such an outage's begin`);
  const owner = new Owner(control);
  const fresh = await namedSandboxes(owner, freshSandboxes, served.url);
  const aged = await namedSandboxes(owner, agedSandboxes, served.url);
  const tally: Tally = {
    phase: "before",
    live: 0,
    slowestMs: 0,
    after: 0,
    failedAfter: 0,
    failures: {},
    endedEntries: {},
  };
  const agedCallers = Math.floor(options.callers / freshEvery);
  const load = new SteadyLoad({
    urls: [served.url],
    paceMs: options.paceMs,
    ask: (caller, sandbox) => ask(stage, tally, { caller, sandbox }),
  });
  try {
    const opening = openStreams(stage, owner, options);
    await pause(Math.max(0, options.rampSeconds * 1000 - agedMs));
    load.add(agedCallers, aged);
    const streams = await opening;
    load.add(options.callers - agedCallers, fresh);
    await pause(freshMs);
    const outage = await standStill(stage, tally, options.outageSeconds);
    await pause(afterMs);
    await load.end();
    const during = routes.questions().filter(({ atMs }) => atMs >= outage.fromMs && atMs < outage.untilMs);
    const ids = new Set(fresh.map(({ sandboxId }) => sandboxId));
    const asked = during.filter(({ sandboxId }) => ids.has(sandboxId)).length;
    const streamsCut =
      streams.filter((stream) => stream.ended !== undefined || !stream.isWhole).length +
      served.gateway.counts.continued;
    return judge({
      options,
      tally,
      asked,
      askedAhead: during.length - asked,
      workerSegments: outage.workerSegments,
      workersToOthers: outage.workersToOthers,
      streamsCut,
      longestSilenceMs: Math.round(Math.max(0, ...streams.map(({ longestSilenceMs }) => longestSilenceMs))),
    });
  } finally {
    await load.end();
  }
}

function judge(found: {
  readonly options: OutageOptions;
  readonly tally: Tally;
  readonly asked: number;
  readonly askedAhead: number;
  readonly workerSegments: number;
  readonly workersToOthers: number;
  readonly streamsCut: number;
  readonly longestSilenceMs: number;
}): OutageReport {
  const { options, tally, asked, askedAhead, workerSegments, workersToOthers, streamsCut, longestSilenceMs } =
    found;
  const { outageSeconds, streams } = options;
  const failed = Object.values(tally.failures).reduce((sum, count) => sum + count, 0);
  const segmentLimit = outageSeconds * segmentsPerSecond;
  if (tally.live < 10 * segmentLimit) throw new UnsoundRun(`only ${tally.live} requests were made meanwhile`);
  const isQuiet = asked === 0 && workersToOthers === 0 && workerSegments <= segmentLimit;
  const flowed = streamsCut === 0 && longestSilenceMs < silenceLimitMs;
  return {
    drill: "outage",
    ok: failed === 0 && tally.failedAfter === 0 && isQuiet && flowed,
    outageSeconds,
    liveRequests: tally.live,
    failed: boundedRate(failed, tally.live),
    failures: tally.failures,
    slowestMs: Math.round(tally.slowestMs),
    asked,
    askedAhead,
    workerSegments,
    workersToOthers,
    endedEntries: tally.endedEntries,
    streams,
    streamsCut,
    longestSilenceMs,
    failedAfterwards: boundedRate(tally.failedAfter, tally.after),
  };
}

/** So that streams of every age are open when the outage begins: their callers are checked anew after 50 s. */
async function openStreams(
  { control, served }: ApartStage,
  owner: Owner,
  { streams, rampSeconds }: OutageOptions,
): Promise<readonly CountingStream[]> {
  const client = { apiUrl: control.apiUrl, sandboxUrl: served.url, apiKey: control.apiKey.reveal() };
  const startedMs = systemClock.monotonicMs();
  const opened: CountingStream[] = [];
  for (let at = 0; at < streams; at += 1) {
    const { sandboxId } = await owner.create();
    opened.push(await CountingStream.open(sandboxId, client));
    const dueMs = startedMs + ((at + 1) * rampSeconds * 1000) / streams;
    await pause(Math.max(0, dueMs - systemClock.monotonicMs()));
  }
  return opened;
}

interface Outage {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly workerSegments: number;
  readonly workersToOthers: number;
}

async function standStill({ control }: ApartStage, tally: Tally, seconds: number): Promise<Outage> {
  const { workerPids, meshPort } = control.ready;
  const watch = new WorkerConnections(workerPids, meshPort);
  process.kill(control.pid, "SIGSTOP");
  const fromMs = systemClock.monotonicMs();
  tally.phase = "outage";
  try {
    while (systemClock.monotonicMs() < fromMs + seconds * 1000) {
      await pause(lookEveryMs);
      if (!isStopped(control.pid)) throw new UnsoundRun("the control plane does not stand still");
      watch.look();
    }
    const { segments: workerSegments, others: workersToOthers } = watch;
    return { fromMs, untilMs: systemClock.monotonicMs(), workerSegments, workersToOthers };
  } finally {
    tally.phase = "after";
    process.kill(control.pid, "SIGCONT");
  }
}

async function ask(
  { routes }: ApartStage,
  tally: Tally,
  { caller, sandbox }: { readonly caller: Caller; readonly sandbox: SandboxAddress },
): Promise<void> {
  const { phase } = tally;
  const askedMs = systemClock.monotonicMs();
  const isLive = askedMs + edgeMs < routes.liveUntilMs(sandbox.sandboxId, "files:read");
  const problem = await readName(caller, sandbox);
  if (phase === "outage" && !isLive) return countOne(tally.endedEntries, problem ?? "served");
  if (phase === "outage") {
    tally.live += 1;
    tally.slowestMs = Math.max(tally.slowestMs, systemClock.monotonicMs() - askedMs);
  }
  if (phase === "after") {
    tally.after += 1;
    if (problem !== undefined) tally.failedAfter += 1;
  } else if (problem !== undefined) countOne(tally.failures, problem);
}
