// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ApiCaller, type SandboxId, type SandboxRecord, SpaceError } from "@space/model";
import { notFound } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import { type RunningTransition, within } from "./transitions.ts";

/** When the store is asked again about a transition that another process drives: first, and at the latest. */
const firstPollMs = 25;
const longestPollMs = 1000;

/** Since when and until when (monotonic) somebody waits for other transitions of a sandbox. */
export interface Waiting {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export function startWaiting({ clock, limits }: Pick<ControlParts, "clock" | "limits">): Waiting {
  const sinceMs = clock.monotonicMs();
  return { sinceMs, untilMs: sinceMs + limits.waitMs };
}

/** The caller's own sandbox, dead ones excluded. Throws `sandbox/not-found`, for another tenant's alike. */
export async function ownSandbox(
  { sandboxes }: Pick<ControlParts, "sandboxes">,
  caller: ApiCaller,
  sandboxId: SandboxId,
): Promise<SandboxRecord> {
  const record = await sandboxes.read(sandboxId);
  if (record === undefined || record.tenantId !== caller.tenantId) throw notFound(sandboxId);
  if (record.state === "killed" || record.state === "failed") throw notFound(sandboxId);
  return record;
}

/**
 * What `act` makes of the caller's own sandbox, which runs: others' transitions of it are waited for, and it is looked at
 * again where `act` says, by undefined, that something else was quicker. Throws `sandbox/not-found`, `sandbox/state` when
 * it does not run, `deadline/passed`, and what `act` throws.
 */
export async function whenRunning<T>(
  parts: ControlParts,
  { caller, sandboxId }: { readonly caller: ApiCaller; readonly sandboxId: SandboxId },
  act: (record: SandboxRecord) => Promise<T | undefined>,
): Promise<T> {
  const waiting = startWaiting(parts);
  for (;;) {
    const record = await ownSandbox(parts, caller, sandboxId);
    switch (record.state) {
      case "running": {
        const made = await act(record);
        if (made !== undefined) return made;
        break;
      }
      case "creating":
      case "pausing":
      case "resuming":
        await awaitTurn(parts, sandboxId, waiting);
        break;
      case "paused":
      case "killing":
      case "killed":
      case "failed":
      case "lost":
        throw new SpaceError("sandbox/state", { sandboxId, state: record.state });
    }
  }
}

/**
 * Waits for the present transition of the sandbox, or a moment when another process drives it. Returns the transition
 * and how it ended, if it was ours. Throws `deadline/passed` when the waiting is over.
 */
export async function awaitTurn(
  { transitions, clock, limits }: ControlParts,
  sandboxId: SandboxId,
  { sinceMs, untilMs }: Waiting,
): Promise<{ readonly kind: RunningTransition["kind"]; readonly error?: unknown } | undefined> {
  const late = new SpaceError("deadline/passed", { what: "sandbox transition", limitMs: limits.waitMs });
  const nowMs = clock.monotonicMs();
  const leftMs = untilMs - nowMs;
  if (leftMs <= 0) throw late;
  const current = transitions.current(sandboxId);
  if (current === undefined) {
    const pollMs = Math.min(longestPollMs, Math.max(firstPollMs, (nowMs - sinceMs) / 4)); // late by a fourth
    await new Promise<void>((resolve) => clock.after(Math.min(pollMs, leftMs), resolve));
    return undefined;
  }
  const end = await within(clock, leftMs, current.end);
  if (end === undefined) throw late;
  return end.kind === "failed" ? { kind: current.kind, error: end.error } : { kind: current.kind };
}
