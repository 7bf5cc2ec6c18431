// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ApiCaller, type SandboxId, SpaceError } from "@space/model";
import { checkTimeout } from "./check-timeout.ts";
import type { ControlParts } from "./parts.ts";
import { awaitTurn, ownSandbox, startWaiting } from "./turns.ts";

/** Sets the end of a running sandbox to now + timeout; may shorten it. Throws `sandbox/state` when it does not run. */
export async function setSandboxTimeout(
  parts: ControlParts,
  { caller, sandboxId, timeoutMs }: { caller: ApiCaller; sandboxId: SandboxId; timeoutMs: number },
): Promise<void> {
  checkTimeout(parts, timeoutMs);
  const waiting = startWaiting(parts);
  for (;;) {
    const record = await ownSandbox(parts, caller, sandboxId);
    const { state } = record;
    if (state === "pausing" && record.goesOn) {
      await awaitTurn(parts, sandboxId, waiting); // it is shown as running
      continue;
    }
    if (state !== "running") throw new SpaceError("sandbox/state", { sandboxId, state });
    const endAtMs = parts.clock.wallMs() + timeoutMs;
    const outcome = await parts.sandboxes.change({
      on: record,
      change: { kind: "set-end", endAtMs },
      why: "asked",
    });
    if (outcome.kind === "won") return; // else: each loss means that somebody else went ahead, so this ends
  }
}
