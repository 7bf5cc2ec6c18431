// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { compareIdentity, type WorkerReport } from "@space/model";
import { loseSandbox } from "./lose-sandbox.ts";
import type { ControlParts } from "./parts.ts";

/** Longest reason that is kept. */
const reasonLimit = 200;

/**
 * An execution ended by itself. Only what is still at exactly that identity is lost (incident 1); whoever drives a
 * transition of it finds out from the worker. Resolves when that is durable. Repeating it changes nothing.
 */
export async function takeReport(parts: ControlParts, { identity, reason }: WorkerReport): Promise<void> {
  const { sandboxId } = identity;
  for (;;) {
    const record = await parts.sandboxes.read(sandboxId);
    if (record === undefined || compareIdentity(identity, record.execution.identity) !== "identical") return;
    const isDriven = parts.transitions.current(sandboxId) !== undefined;
    const isRunning = record.state === "running" || (record.state === "pausing" && !isDriven);
    if (!isRunning) return;
    if (await loseSandbox(parts, record, `exited: ${reason.slice(0, reasonLimit)}`)) return;
  }
}
