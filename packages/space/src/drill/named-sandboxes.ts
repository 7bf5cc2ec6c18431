// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { UnsoundRun } from "../bench/unsound.ts";
import { Caller, type SandboxAddress } from "./caller.ts";
import { readOutcome, runOutcome } from "./outcome.ts";
import type { Owner } from "./owner.ts";

const namePath = "/home/user/name";

/** Makes sandboxes whose file names them. The entries that this makes at the gateway are for other access than reading. */
export async function namedSandboxes(
  owner: Owner,
  count: number,
  url: string,
): Promise<readonly SandboxAddress[]> {
  const writer = new Caller(url);
  const made: SandboxAddress[] = [];
  for (let at = 0; at < count; at += 1) {
    const sandbox = await owner.create();
    const write = ["-c", `printf %s '${sandbox.sandboxId}' >${namePath}`];
    const written = runOutcome(await writer.start(sandbox, "/bin/sh", write));
    if (written.kind !== "served") throw new UnsoundRun(`not written: ${JSON.stringify(written)}`);
    made.push(sandbox);
  }
  writer.close();
  return made;
}

/** Reads the name: undefined when it is right, otherwise in a word what came instead. */
export async function readName(caller: Caller, sandbox: SandboxAddress): Promise<string | undefined> {
  const path = `/files?path=${encodeURIComponent(namePath)}&username=user`;
  const outcome = readOutcome(await caller.get(sandbox, path));
  if (outcome.kind !== "served") return outcome.what;
  return outcome.text === sandbox.sandboxId ? undefined : "another's answer";
}

/** Counts one more of a kind. */
export function countOne(counts: Record<string, number>, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}
