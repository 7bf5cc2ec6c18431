// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxRecord } from "@space/model";
import { sharedFailure } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import { resumePaused } from "./resume-sandbox.ts";
import { awaitTurn, startWaiting } from "./turns.ts";

/** What a client that only sends a request gets at least. */
const shortestLifeMs = 300_000;

/**
 * Whether a request makes it run: that was asked for when it was created, and what ran goes on with its memory. Where only
 * files are left its owner has to say so, since a request cannot be told that the rest is gone.
 */
export function isWakeable({ state, autoResume, goesOn, snapshot }: SandboxRecord): boolean {
  if (!autoResume) return false;
  const keepsMemory = snapshot !== null && (snapshot.memory === "in-snapshot" || snapshot.frozenOn !== null);
  if (state === "paused") return keepsMemory;
  return state === "resuming" || (state === "pausing" && !goesOn);
}

/**
 * Makes it run, once however many ask: all wait for the one resume, and a failure of it is that of all. It lives as long as
 * when it was created. Undefined where it comes to something that is not to be woken. Throws what a resume throws, and
 * `deadline/passed`.
 */
export async function wakeSandbox(
  parts: ControlParts,
  { sandboxId }: SandboxRecord,
): Promise<SandboxRecord | undefined> {
  const waiting = startWaiting(parts);
  for (;;) {
    const record = await parts.sandboxes.read(sandboxId);
    if (record === undefined || record.state === "running") return record;
    if (!isWakeable(record)) return undefined;
    if (record.state === "paused") {
      const resumed = await resume(parts, record);
      if (resumed !== undefined) return resumed;
      continue; // another was quicker
    }
    const end = await awaitTurn(parts, sandboxId, waiting);
    if (end?.kind === "resume" && end.error !== undefined) throw sharedFailure(end.error, "resume");
  }
}

/** Where its frozen processes are, or nowhere: while their worker is away it cannot be reached. */
function resume(parts: ControlParts, record: SandboxRecord): Promise<SandboxRecord | undefined> {
  const { timeoutMs, snapshot } = record;
  const holder = snapshot?.frozenOn ?? null;
  const request = {
    timeoutMs: Math.min(Math.max(timeoutMs, shortestLifeMs), parts.limits.timeoutMs),
    memory: true,
    ...(holder !== null && { workerId: holder }),
  };
  return resumePaused(parts, record, request, "auto-resume");
}
