// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ExecutionLimits, SpaceError } from "@space/model";
import type { RestoreRecord, StartedProcess } from "@space/spaced-guest";
import { ByteReader } from "./byte-reader.ts";
import type { LauncherLink } from "./launcher-link.ts";
import { type RangeRunner, restoreLayer } from "./layer-archive.ts";
import { holdsMemory } from "./memory-archive.ts";
import type { MemorySnapshots, NewGuest, RestorePart } from "./memory-snapshots.ts";

/** What CRIU takes for itself while it restores, in the guest's own group. */
const restorerProcesses = 16;

export function boundsWithRestorer(limits: ExecutionLimits): ExecutionLimits {
  return { ...limits, processes: limits.processes + restorerProcesses };
}

/** Fills the guest's layer, and says what else there is when the archive holds memory too. Throws `snapshot/refused`. */
export async function takeArchive(
  archive: AsyncIterable<Uint8Array>,
  guest: NewGuest,
  { inRange, memory }: { readonly inRange: RangeRunner; readonly memory: MemorySnapshots | undefined },
): Promise<RestorePart | undefined> {
  const reader = new ByteReader(archive);
  try {
    const part = (await holdsMemory(reader)) ? await required(memory).unpack(reader, guest) : undefined;
    await restoreLayer(inRange, guest.uidBase, guest.upper, reader.rest());
    return part;
  } finally {
    await reader.close();
  }
}

/** Starts a guest with the memory that was taken out of its archive, which is in the guest then. Throws `snapshot/refused`. */
export async function startRestored(
  record: RestoreRecord,
  { link, memory }: { readonly link: LauncherLink; readonly memory: MemorySnapshots | undefined },
): Promise<StartedProcess> {
  try {
    return await (await link.connected()).restore(record);
  } catch (cause) {
    throw required(memory).refusal(record.activationId, cause);
  }
}

function required(memory: MemorySnapshots | undefined): MemorySnapshots {
  if (memory !== undefined) return memory;
  throw new SpaceError("snapshot/refused", { problem: "it holds memory, and this worker has no CRIU" });
}
