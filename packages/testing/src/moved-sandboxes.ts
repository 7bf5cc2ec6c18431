// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import type { Sandbox } from "e2b";
import type { EmbeddedRig } from "./embedded-rig.ts";

/** How far a counter has come that writes its number and who it is into `/tmp/count`. */
export async function counted(sandbox: Sandbox): Promise<{ readonly n: number; readonly who: string }> {
  const [n = "", ...who] = (await sandbox.files.read("/tmp/count")).split(" ");
  return { n: Number(n), who: who.join(" ") };
}

/** The worker that a sandbox is on, or was last. */
export async function placeOf(rig: EmbeddedRig, sandboxId: string): Promise<string> {
  const answer = await fetch(`${rig.system.apiUrl}/sandboxes/${sandboxId}`, { headers: headers(rig) });
  return ((await answer.json()) as { space: { workerID: string } }).space.workerID; // cast: our own API's answer
}

/** Resumes a paused sandbox on another of the rig's workers than this. */
export async function resumeElsewhere(rig: EmbeddedRig, sandboxId: string, from: string): Promise<void> {
  const workerID = rig.system.workerIds.find((id) => id !== from) ?? "";
  const answer = await fetch(`${rig.system.apiUrl}/v2/sandboxes/${sandboxId}/connect`, {
    method: "POST",
    headers: headers(rig),
    body: JSON.stringify({ timeout: 300, workerID }),
  });
  assert.equal(answer.status, 201, await answer.text());
}

function headers(rig: EmbeddedRig): Record<string, string> {
  return { "x-api-key": rig.system.apiKey.reveal(), "content-type": "application/json" };
}
