// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type ForkedSandbox,
  type ForkSandbox,
  isSpaceError,
  type KeptSnapshot,
  type SandboxId,
  type SandboxRecord,
  SpaceError,
} from "@space/model";
import { checkTimeout } from "./check-timeout.ts";
import { beginSandbox } from "./create-sandbox.ts";
import { codeOf } from "./failures.ts";
import { keepSnapshot } from "./keep-snapshot.ts";
import type { ControlParts } from "./parts.ts";
import { connectedView } from "./sandbox-view.ts";
import { releaseKept } from "./snapshot-operations.ts";

/** Children of one fork. */
const countLimit = 100;

/** See `SnapshotService.fork`. */
export async function forkSandbox(
  parts: ControlParts,
  of: { readonly caller: ApiCaller; readonly sandboxId: SandboxId; readonly requireOpen: () => void },
  { count, timeoutMs }: ForkSandbox,
): Promise<readonly ForkedSandbox[]> {
  checkTimeout(parts, timeoutMs);
  if (!Number.isInteger(count) || count < 1 || count > countLimit)
    throw new SpaceError("input/invalid", { field: "count", problem: `must be 1 to ${countLimit}` });
  // A fork that its process does not live to end is forgotten with every claim of that time.
  const heldUntilMs = parts.clock.wallMs() + parts.limits.claimMs;
  const { kept, source } = await keepSnapshot(parts, of, { name: null, heldUntilMs });
  try {
    return await eachChild(parts, count, () => beginChild(parts, { kept, source, timeoutMs, ...of }));
  } finally {
    await releaseKept(parts, kept).catch((error: unknown) => {
      const { sandboxId } = kept; // its time ends all the same
      parts.audit.record("upkeep/failed", { task: "release a fork", sandboxId, code: codeOf(error) });
    });
  }
}

interface Child {
  readonly kept: KeptSnapshot;
  readonly source: SandboxRecord;
  readonly timeoutMs: number;
  /** Throws when nothing more is to be begun. */
  readonly requireOpen: () => void;
}

/** As its source in everything but its identity, its secrets and its end. */
async function beginChild(
  parts: ControlParts,
  { kept, source, timeoutMs, requireOpen }: Child,
): Promise<ForkedSandbox> {
  const { template, metadata, variables, onTimeout, keepMemory, autoResume, autoRecover } = source;
  const shape = { template, metadata, variables, onTimeout, keepMemory, autoResume, autoRecover };
  try {
    requireOpen();
    const outcome = await beginSandbox(parts, {
      tenantId: source.tenantId,
      shape: { ...shape, timeoutMs, limits: kept.limits },
      from: { kind: "fork", kept },
    });
    if (outcome.kind === "running") {
      const sandbox = connectedView(outcome.record, parts.tokens, false);
      return { kind: "sandbox", sandbox, memory: kept.memory };
    }
    throw new SpaceError("internal/bug", { where: "a child without an idempotency key" });
  } catch (error) {
    const shown = isSpaceError(error)
      ? error
      : new SpaceError("internal/bug", { where: "fork" }, { cause: error });
    return { kind: "failed", error: shown };
  }
}

/** A bounded number at once: each is a start, with its files to be read. */
async function eachChild<T>(
  { limits }: Pick<ControlParts, "limits">,
  count: number,
  begin: () => Promise<T>,
): Promise<readonly T[]> {
  const made: T[] = [];
  let left = count;
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      made.push(await begin());
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, limits.atOnce) }, work));
  return made;
}
