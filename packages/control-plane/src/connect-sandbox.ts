// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type ConnectedSandbox,
  type ConnectSandbox,
  type SandboxId,
  type SandboxRecord,
  SpaceError,
} from "@space/model";
import { checkTimeout } from "./check-timeout.ts";
import { sharedFailure } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import { resumePaused } from "./resume-sandbox.ts";
import { connectedView } from "./sandbox-view.ts";
import { awaitTurn, ownSandbox, startWaiting } from "./turns.ts";

export interface Connecting {
  readonly caller: ApiCaller;
  readonly sandboxId: SandboxId;
  readonly request: ConnectSandbox;
  /** What a sandbox that runs already gets: a longer life, or `sandbox/state`. */
  readonly ifRunning: "extend" | "refuse";
}

/**
 * Makes a sandbox run. Of many who connect at once to a paused one, one resumes it and all get its answer, a failure
 * alike. The end of a running one is only ever moved further out. Throws what a resume throws.
 */
export async function connectSandbox(parts: ControlParts, connecting: Connecting): Promise<ConnectedSandbox> {
  const { caller, sandboxId, request, ifRunning } = connecting;
  checkTimeout(parts, request.timeoutMs);
  const waiting = startWaiting(parts);
  for (;;) {
    const record = await ownSandbox(parts, caller, sandboxId);
    switch (record.state) {
      case "running": {
        if (ifRunning === "refuse") throw stateForbids(record);
        const extended = await extend(parts, record, request.timeoutMs);
        if (extended !== undefined) return connectedView(extended, parts.tokens, false);
        break; // something else was quicker: look again
      }
      case "paused":
      case "lost": {
        if (record.state === "lost") requireNamed(record, request);
        const resumed = await resumePaused(parts, record, request, "asked");
        if (resumed !== undefined) return connectedView(resumed, parts.tokens, true);
        break;
      }
      case "creating":
      case "pausing":
      case "resuming": {
        const end = await awaitTurn(parts, sandboxId, waiting);
        if (end?.kind === "resume" && end.error !== undefined) throw sharedFailure(end.error, "resume");
        break;
      }
      case "killing":
      case "killed":
      case "failed":
        throw stateForbids(record);
    }
  }
}

async function extend(
  parts: ControlParts,
  record: SandboxRecord,
  timeoutMs: number,
): Promise<SandboxRecord | undefined> {
  const endAtMs = parts.clock.wallMs() + timeoutMs;
  if (endAtMs <= record.endAtMs) return record;
  const outcome = await parts.sandboxes.change({
    on: record,
    change: { kind: "set-end", endAtMs },
    why: "asked",
  });
  return outcome.kind === "won" ? outcome.record : undefined;
}

/** Statement 5: what it wrote since its newest snapshot is gone, so only who names that snapshot goes on from it. */
function requireNamed({ sandboxId, reason, snapshot }: SandboxRecord, request: ConnectSandbox): void {
  if (snapshot !== null && request.snapshot === snapshot.digest) return;
  throw new SpaceError("sandbox/lost", {
    sandboxId,
    reason: reason ?? "unknown",
    snapshot: snapshot?.digest ?? null,
  });
}

function stateForbids({ sandboxId, state }: SandboxRecord): SpaceError {
  return new SpaceError("sandbox/state", { sandboxId, state });
}
