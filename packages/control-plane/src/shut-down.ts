// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxRecord } from "@space/model";
import { giveUp } from "./bring-up.ts";
import { loseSandbox } from "./lose-sandbox.ts";
import type { ControlParts } from "./parts.ts";
import { pauseRunning } from "./pause-sandbox.ts";
import { within } from "./transitions.ts";

const stopped = "the installation was stopped";

export interface ShutDownReport {
  readonly paused: number;
  /** Those whose pause failed or was not done in time. */
  readonly lost: number;
  /** Frozen processes that were ended; their files remain. */
  readonly discarded: number;
}

/**
 * Leaves nothing at the workers: pauses what runs, files only, so many at once as the limit says, and ends what is
 * frozen. Whatever is not paused by the deadline is lost, and says so. Calls of callers must have ended, or be refused.
 */
export async function shutDownSandboxes(parts: ControlParts, deadlineMs: number): Promise<ShutDownReport> {
  const { clock, limits } = parts;
  const untilMs = clock.monotonicMs() + deadlineMs;
  const leftMs = (): number => Math.max(0, untilMs - clock.monotonicMs());
  await within(clock, leftMs(), parts.transitions.idle());
  const queue = (await parts.sandboxes.live()).filter(({ state }) => state === "running");
  let paused = 0;
  const worker = async (): Promise<void> => {
    for (let record = queue.shift(); record !== undefined && leftMs() > 0; record = queue.shift()) {
      if (await pauseFiles(parts, record, leftMs())) paused += 1;
    }
  };
  await Promise.all(Array.from({ length: limits.atOnce }, worker));
  const discarded = await discardFrozen(parts);
  const lost = await loseRest(parts);
  await within(clock, limits.confirmMs, parts.feeds.idle());
  return { paused, lost, discarded };
}

async function pauseFiles(parts: ControlParts, record: SandboxRecord, limitMs: number): Promise<boolean> {
  try {
    return (
      (await within(
        parts.clock,
        limitMs,
        pauseRunning(parts, record, { keepMemory: false, why: stopped }),
      )) !== undefined
    );
  } catch {
    return false; // counted and recorded with the rest that is lost
  }
}

async function discardFrozen(parts: ControlParts): Promise<number> {
  let discarded = 0;
  for (const record of await parts.sandboxes.live()) {
    const { state, snapshot, sandboxId } = record;
    const workerId = snapshot?.frozenOn ?? null;
    if (state !== "paused" || snapshot === null || workerId === null) continue;
    const outcome = await parts.sandboxes.change({
      on: record,
      change: { kind: "forget-frozen" },
      effects: [{ kind: "discard", sandboxId, workerId, manifest: snapshot.digest }],
      why: stopped,
    });
    if (outcome.kind !== "won") continue;
    void parts.feeds.deliver(outcome.effects);
    discarded += 1;
  }
  return discarded;
}

async function loseRest(parts: ControlParts): Promise<number> {
  let lost = 0;
  for (const record of await parts.sandboxes.live()) {
    if (record.state === "resuming") await giveUp(parts, record, stopped); // what it was resumed from stays
    const isOpen = record.state === "running" || record.state === "pausing";
    if (isOpen && (await loseSandbox(parts, record, stopped))) lost += 1;
  }
  return lost;
}
