// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import type { GuestHost, TestGuest } from "./guest-host.ts";

export async function* fromChunks(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield chunk;
}

/** What worker and bridge do before a snapshot: the guest lets go where its memory is saved too, and is frozen. */
export async function freezeForSnapshot({ substrate }: GuestHost, guest: TestGuest): Promise<void> {
  if (substrate.abilities.memorySnapshots) await guest.using((connection) => connection.quiesce());
  assert.equal(await substrate.freeze(guest.activationId, "snapshot"), true);
}

/** Freezes and saves. */
export async function save(host: GuestHost, guest: TestGuest): Promise<Uint8Array[]> {
  await freezeForSnapshot(host, guest);
  const chunks: Uint8Array[] = [];
  for await (const chunk of host.substrate.snapshot(guest.activationId)) chunks.push(chunk);
  return chunks;
}
