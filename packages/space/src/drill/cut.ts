// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { newAdmissionId, parseSandboxId, type RouteEntry, Secret } from "@space/model";
import { FrameLink, type LinkStream, type OperationHead } from "@space/wire";
import { UnsoundRun } from "../bench/unsound.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { enveloped, type SandboxAddress } from "./caller.ts";
import { Owner } from "./owner.ts";
import { becomes } from "./waiting.ts";

export interface CutOptions {
  /** Streams of one sandbox that are open when its epoch ends; every fourth writes as fast as its reader takes it. */
  readonly streams: number;
  /** Epochs ended, by a pause and by a kill in turn. */
  readonly rounds: number;
}

export interface CutReport {
  readonly drill: "cut";
  readonly ok: boolean;
  readonly streams: number;
  readonly rounds: number;
  /** Bytes that the readers had been sent in all. */
  readonly megabytes: number;
  /** The longest time from the first stream of a sandbox that heard of its end to the last. */
  readonly lastHeardMs: number;
  readonly limitMs: number;
  /** The words with which they ended. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Pieces that came after a stream's end, or streams that never ended. */
  readonly outlived: number;
}

/** */
const limitMs = 100;
const writerEvery = 4;
const startWaitMs = 30_000;
const endWaitMs = 15_000;
const lookEveryMs = 5;

/** One stream, presented to a worker as a gateway would. */
interface OpenStream {
  bytes: number;
  reason: string | undefined;
  endedMs: number;
  /** Pieces that came after the end. */
  late: number;
}

/**
 * Presents many streams of one sandbox to its worker directly, as a gateway would, ends their epoch while they run, and
 * measures how much later the last of them hears of it than the first.
 */
export async function drillCut(
  system: EmbeddedSystem,
  { streams: count, rounds }: CutOptions,
): Promise<CutReport> {
  const owner = new Owner(system);
  const reasons: Record<string, number> = {};
  let bytes = 0;
  let lastHeardMs = 0;
  let outlived = 0;
  for (let round = 0; round < rounds; round += 1) {
    const sandbox = await owner.create();
    const entry = await entryFor(system, sandbox);
    const link = new FrameLink(await system.dialWorker(entry.route.endpoint.workerId), { dialled: true });
    const streams = Array.from({ length: count }, (_, at) =>
      at % writerEvery === 0
        ? present(link, entry, "/usr/bin/yes", ["so that there is always something on the way"])
        : present(link, entry, "/bin/sleep", ["3600"]),
    );
    await becomes(() => streams.every((stream) => stream.bytes > 0), { limitMs: startWaitMs, lookEveryMs });
    if (streams.some((stream) => stream.bytes === 0 || stream.reason !== undefined))
      throw new UnsoundRun("not every stream was open when the epoch ended");
    const ending = round % 2 === 0 ? owner.pause(sandbox) : owner.kill(sandbox);
    // Gives up after a while: a stream that never ends is what is looked for.
    await becomes(() => streams.every(({ reason }) => reason !== undefined), {
      limitMs: endWaitMs,
      lookEveryMs,
    });
    await ending;
    await link.ping(); // whatever was still on its way has come
    const times = streams.map(({ endedMs }) => endedMs);
    lastHeardMs = Math.max(lastHeardMs, Math.max(...times) - Math.min(...times));
    for (const { reason = "never", late } of streams) {
      reasons[reason] = (reasons[reason] ?? 0) + 1;
      if (late > 0 || reason === "never") outlived += 1;
    }
    bytes += streams.reduce((sum, stream) => sum + stream.bytes, 0);
    link.destroy(undefined);
    if (round % 2 === 0) await owner.kill(sandbox);
  }
  return {
    drill: "cut",
    ok: outlived === 0 && lastHeardMs <= limitMs && Object.keys(reasons).join() === "epoch-ended",
    streams: count,
    rounds,
    megabytes: Math.round(bytes / 1024 / 1024),
    lastHeardMs: Math.round(lastHeardMs * 10) / 10,
    limitMs,
    reasons,
    outlived,
  };
}

/** Starts a program as one stream: one that writes without end, or one that says nothing. */
function present(link: FrameLink, entry: RouteEntry, cmd: string, args: readonly string[]): OpenStream {
  const state: OpenStream = { bytes: 0, reason: undefined, endedMs: 0, late: 0 };
  const head: OperationHead = {
    admission: newAdmissionId(systemRandom),
    sandbox: entry.route.identity.sandboxId,
    capability: entry.capability,
    target: { purpose: "control" },
    method: "POST",
    path: "/process.Process/Start",
    headers: ["content-type", "application/connect+json"],
  };
  const stream: LinkStream = link.open(
    JSON.stringify(head),
    {
      onHead: () => undefined,
      onData: (chunk) => {
        state.bytes += chunk.length;
        if (state.reason !== undefined) state.late += 1;
        stream.consumed(chunk.length);
      },
      onEnd: () => end(state, "ended"),
      onReset: (reason) => end(state, reason),
    },
    false,
  );
  stream.send(enveloped(JSON.stringify({ process: { cmd, args, envs: {} }, stdin: false })));
  stream.end();
  return state;
}

function end(state: OpenStream, reason: string): void {
  state.reason = reason;
  state.endedMs = systemClock.monotonicMs();
}

async function entryFor(system: EmbeddedSystem, sandbox: SandboxAddress): Promise<RouteEntry> {
  const answer = await system.routes.resolve({
    sandboxId: parseSandboxId(sandbox.sandboxId),
    credential: { kind: "access-token", token: new Secret(sandbox.accessToken) },
    wanted: { purpose: "control", scope: "process:run" },
    presenter: system.presenter,
  });
  if (answer.kind !== "entry") throw new UnsoundRun(`no route: ${answer.kind}`);
  return answer.entry;
}
