// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxRecord } from "@space/model";
import { codeOf } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import { resumePaused } from "./resume-sandbox.ts";

/**
 * Resumes lost sandboxes from their newest snapshots, where that was asked for when they were created: for the rest of
 * their time, and with the lost generation shown until there is a newer snapshot. What cannot be resumed now is tried
 * again at the next round.
 */
export async function recoverLost(parts: ControlParts): Promise<void> {
  const { sandboxes, clock, limits, transitions } = parts;
  const lost = await sandboxes.recoverable(clock.wallMs(), limits.atOnce);
  const idle = lost.filter(({ sandboxId }) => transitions.current(sandboxId) === undefined);
  await Promise.all(idle.map((record) => recover(parts, record)));
}

async function recover(parts: ControlParts, record: SandboxRecord): Promise<void> {
  const { sandboxId, endAtMs, lostGeneration } = record;
  const timeoutMs = Math.max(1, endAtMs - parts.clock.wallMs());
  try {
    const resumed = await resumePaused(parts, record, { timeoutMs, memory: false }, "auto-recover");
    if (resumed === undefined) return; // something else was quicker
    const lost = lostGeneration?.toString() ?? "";
    parts.audit.record("sandbox/recovered", { sandboxId, lost, generation: resumed.generation.toString() });
  } catch (error) {
    parts.audit.record("upkeep/failed", { task: "recover lost", sandboxId, code: codeOf(error) });
  }
}
