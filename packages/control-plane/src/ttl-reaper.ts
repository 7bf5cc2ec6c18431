// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxId, SandboxRecord } from "@space/model";
import { codeOf } from "./failures.ts";
import { killIfStill } from "./kill-sandbox.ts";
import type { ControlParts } from "./parts.ts";
import { pauseRunning } from "./pause-sandbox.ts";

/**
 * Ends what has reached its end: kill, or pause where that was asked for. Each decision is written only if the sandbox
 * still is as it was when it was made: one that was just given more time keeps it (incident 32). A pause that fails is
 * tried again, less and less often: what a caller wanted kept is never killed instead.
 */
export class TtlReaper {
  readonly #parts: ControlParts;
  readonly #busy = new Set<SandboxId>();
  /** Pauses that failed: when (monotonic) to try again, and how long was waited. */
  readonly #failed = new Map<SandboxId, { readonly againMs: number; readonly waitedMs: number }>();
  #working: Promise<void>[] = [];

  constructor(parts: ControlParts) {
    this.#parts = parts;
  }

  /** Starts on what is due now, at most as much at once as the limit says, and does not wait for it. */
  async tick(): Promise<void> {
    const { sandboxes, clock, limits } = this.#parts;
    for (const record of await sandboxes.due(clock.wallMs(), limits.batch)) {
      if (this.#busy.size >= limits.atOnce) return;
      if (!this.#busy.has(record.sandboxId) && this.#mayTry(record.sandboxId)) this.#begin(record);
    }
  }

  /** Resolves when what was started has ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#working);
  }

  #mayTry(sandboxId: SandboxId): boolean {
    const failed = this.#failed.get(sandboxId);
    return failed === undefined || failed.againMs <= this.#parts.clock.monotonicMs();
  }

  #begin(record: SandboxRecord): void {
    const { sandboxId } = record;
    this.#busy.add(sandboxId);
    const work = this.#end(record)
      .then(() => void this.#failed.delete(sandboxId))
      .catch((error: unknown) => this.#postpone(sandboxId, error))
      .finally(() => {
        this.#busy.delete(sandboxId);
        this.#working = this.#working.filter((other) => other !== work);
      });
    this.#working.push(work);
  }

  async #end(record: SandboxRecord): Promise<void> {
    if (record.state === "running" && record.onTimeout === "pause") {
      await pauseRunning(this.#parts, record, { keepMemory: record.keepMemory, why: "end of life" });
    } else {
      await killIfStill(this.#parts, record, "end of life");
    }
  }

  #postpone(sandboxId: SandboxId, error: unknown): void {
    const { audit, clock, limits } = this.#parts;
    audit.record("upkeep/failed", { task: "end of life", sandboxId, code: codeOf(error) });
    const before = this.#failed.get(sandboxId)?.waitedMs ?? 0;
    const waitedMs = Math.min(Math.max(before * 2, limits.retryFirstMs), limits.retryLongestMs);
    this.#failed.set(sandboxId, { waitedMs, againMs: clock.monotonicMs() + waitedMs });
  }
}
