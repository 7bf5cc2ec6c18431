// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ChangeReason, SandboxRecord } from "@space/model";
import type { ControlParts } from "./parts.ts";

/**
 * Records that an execution is gone, if the sandbox still is as the record says. Its newest snapshot stays, and a
 * connect resumes from it. The worker is told to retire the execution, so that whatever is left of it ends. Whether it won.
 */
export async function loseSandbox(
  parts: ControlParts,
  record: SandboxRecord,
  why: ChangeReason,
): Promise<boolean> {
  const outcome = await parts.sandboxes.change({
    on: record,
    change: { kind: "lose", reason: why },
    effects: [{ kind: "retire", identity: record.execution.identity, keepFrozen: null }],
    why,
  });
  if (outcome.kind !== "won") return false;
  void parts.feeds.deliver(outcome.effects);
  return true;
}
