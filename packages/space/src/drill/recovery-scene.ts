// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { parseSandboxId, type RouteEntry, Secret, type WorkerId } from "@space/model";
import { Sandbox } from "e2b";
import { UnsoundRun } from "../bench/unsound.ts";
import type { EmbeddedSystem } from "../embedded/embedded-system.ts";
import { systemClock } from "../host/system-clock.ts";
import { Caller, type SandboxAddress } from "./caller.ts";
import { runOutcome } from "./outcome.ts";
import { Owner } from "./owner.ts";
import { heartbeat } from "./recorder.ts";

/** When a caller got how much of what a program says. */
export type Received = readonly { readonly atMs: number; readonly bytes: number }[];

/** How a caller was answered while it tried to run something, and when it ran. */
export interface RanAgain {
  readonly answers: Readonly<Record<string, number>>;
  readonly afterMs: number;
}

const lookEveryMs = 100;
const recoverLimitMs = 180_000;

/** A sandbox on this worker, with a snapshot, that is recovered from it when its worker is lost. */
export async function recoverableSandbox(
  system: EmbeddedSystem,
  workerId: WorkerId,
): Promise<SandboxAddress> {
  const owner = new Owner(system);
  const sandbox = await owner.create({ "space.auto-recover": "true" });
  await owner.pause(sandbox);
  await owner.resume(sandbox, workerId);
  return sandbox;
}

/** Starts the program that beats, and notes what E2B's own client is given of what it says. */
export async function followBeats(
  system: EmbeddedSystem,
  { sandboxId }: SandboxAddress,
  file: string,
): Promise<Received> {
  const { apiUrl, domain } = system;
  const client = { apiUrl, sandboxUrl: apiUrl, apiKey: system.apiKey.reveal(), domain };
  const sandbox = await Sandbox.connect(sandboxId, client);
  const received: { atMs: number; bytes: number }[] = [];
  const handle = await sandbox.commands.run(heartbeat(file), {
    background: true,
    timeoutMs: 0,
    onStdout: (text) => void received.push({ atMs: systemClock.wallMs(), bytes: text.length }),
  });
  handle.wait().catch(() => undefined); // it ends with its generation: how is other drills' matter
  return received;
}

/** What a gateway holds for this sandbox's owner now. */
export async function entryNow(
  system: EmbeddedSystem,
  { sandboxId, accessToken }: SandboxAddress,
): Promise<RouteEntry> {
  const resolved = await system.routes.resolve({
    sandboxId: parseSandboxId(sandboxId),
    credential: { kind: "access-token", token: new Secret(accessToken) },
    wanted: { purpose: "control", scope: "files:read" },
    presenter: system.presenter,
  });
  if (resolved.kind !== "entry") throw new UnsoundRun(`no route: ${resolved.kind}`);
  return resolved.entry;
}

/** Resolves once the sandbox runs as another generation, with when it was first seen to be lost. */
export async function recovered(system: EmbeddedSystem, sandbox: SandboxAddress): Promise<number> {
  const owner = new Owner(system);
  const untilMs = systemClock.monotonicMs() + recoverLimitMs;
  let lostMs: number | undefined;
  while (systemClock.monotonicMs() < untilMs) {
    const health = await owner.health(sandbox);
    if (health !== "as-it-was") lostMs ??= systemClock.wallMs();
    if (health === "recovered" && lostMs !== undefined) return lostMs;
    await pause(lookEveryMs);
  }
  throw new UnsoundRun("the sandbox was not recovered");
}

/** Leaves the program that beats running, trying again as it is told to. Any other answer is an {@link UnsoundRun}. */
export async function startBeats(
  system: EmbeddedSystem,
  sandbox: SandboxAddress,
  file: string,
): Promise<RanAgain> {
  const startedMs = systemClock.monotonicMs();
  const caller = new Caller(system.apiUrl);
  const answers: Record<string, number> = {};
  try {
    while (systemClock.monotonicMs() < startedMs + recoverLimitMs) {
      const outcome = runOutcome(
        await caller.start(sandbox, "/bin/sh", ["-c", `(${heartbeat(file)}) >/dev/null 2>&1 & printf begun`]),
      );
      if (outcome.kind === "error") throw new UnsoundRun(`the sandbox answers: ${outcome.what}`);
      const what = outcome.kind === "served" ? "served" : outcome.what;
      answers[what] = (answers[what] ?? 0) + 1;
      if (outcome.kind === "served") return { answers, afterMs: systemClock.monotonicMs() - startedMs };
      await pause(lookEveryMs);
    }
    throw new UnsoundRun("nothing ran in the sandbox");
  } finally {
    caller.close();
  }
}
