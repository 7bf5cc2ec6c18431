// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { BigIntStats } from "node:fs";
import { lstat, readlink, realpath, stat } from "node:fs/promises";
import { FrameBuilder } from "../frames.ts";
import { GuestFrame } from "../guest-protocol.ts";
import { awaiting } from "./libc.ts";

/** One file as PROTOCOL.md's "Entry" describes it, already encoded. Rejects when there is nothing at the path. */
export async function encodeEntry(path: Buffer): Promise<Buffer> {
  const link = await lstat(path, { bigint: true });
  if (!link.isSymbolicLink()) return encode(link, false, path, Buffer.alloc(0));
  try {
    const [target, text] = await Promise.all([
      stat(path, { bigint: true }),
      realpath(path, { encoding: "buffer" }),
    ]);
    return encode(target, true, path, text);
  } catch {
    // dangling, or a loop: shown as itself
    return encode(link, true, path, await readlink(path, { encoding: "buffer" }));
  }
}

function encode(status: BigIntStats, isSymlink: boolean, path: Buffer, target: Buffer): Buffer {
  const entry = new FrameBuilder(64 + path.length + target.length);
  entry.u8(status.isFile() ? 1 : status.isDirectory() ? 2 : 3).u8(isSymlink ? 1 : 0);
  entry
    .u32(Number(status.mode) & 0o7777)
    .u32(Number(status.uid))
    .u32(Number(status.gid))
    .u64(status.size);
  const seconds = status.mtimeNs / 1_000_000_000n;
  const rest = status.mtimeNs % 1_000_000_000n;
  entry.i64(rest < 0n ? seconds - 1n : seconds).u32(Number(rest < 0n ? rest + 1_000_000_000n : rest));
  return entry.bytes(path).bytes(target).finish();
}

/** The OK frame with the entry of `path`. Throws `GuestError`. */
export async function okEntry(path: Buffer, step: string): Promise<Buffer> {
  const entry = await awaiting(step, encodeEntry(path));
  return new FrameBuilder(entry.length + 8).begin(GuestFrame.ok).raw(entry).end().finish();
}
