// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { dataChunkBytes, type GuestWriter, type WriteOptions } from "@space/spaced-guest";
import type { ChunkSource } from "./chunk-source.ts";
import { onPath } from "./envd-error.ts";
import type { GuestUser } from "./guest-users.ts";
import type { HostedActivation } from "./hosted-activation.ts";

/**
 * Writes a file of the guest from chunks that arrive over time, at the pace of the slower side. A small one is one round
 * trip. When the source fails, what has been written stays.
 */
export async function storeFile(
  activation: HostedActivation,
  path: string,
  user: GuestUser,
  source: ChunkSource,
): Promise<void> {
  const options: WriteOptions = { uid: user.uid, gid: user.gid, makeParents: true };
  const held: Buffer[] = [];
  let heldBytes = 0;
  while (heldBytes <= dataChunkBytes) {
    const chunk = await source();
    if (chunk === undefined) {
      const content = held.length === 1 && held[0] !== undefined ? held[0] : Buffer.concat(held, heldBytes);
      await onPath(
        path,
        activation.pool.use((guest) => guest.writeFile(path, options, content)),
      );
      return;
    }
    held.push(chunk);
    heldBytes += chunk.length;
  }
  // It may take long: it must not hold up the others of the pool.
  const guest = await activation.pool.detach();
  try {
    await onPath(path, writeAll(guest.writeStream(path, options), held, source));
  } finally {
    guest.destroy();
  }
}

async function writeAll(writer: GuestWriter, begun: readonly Buffer[], source: ChunkSource): Promise<void> {
  try {
    for (const chunk of begun) writer.write(chunk);
    await writer.drained();
    for (let chunk = await source(); chunk !== undefined; chunk = await source()) {
      if (!writer.write(chunk)) await writer.drained();
    }
  } catch (error) {
    writer.abort();
    throw error;
  }
  await writer.end();
}
