// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { lchown, mkdir, readdir, stat } from "node:fs/promises";
import { encodeFrame, FrameBuilder, type PayloadReader } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { GuestFrame } from "../guest-protocol.ts";
import { encodeEntry } from "./entries.ts";
import { awaiting, errnoOf } from "./libc.ts";
import { type PeerConnection, takePath } from "./peer-connection.ts";

const slash = 0x2f;
const maxDepth = 128;
const maxPathBytes = 4096;
const listFrameBytes = 48 * 1024;
const entriesAtOnce = 64;
const errnoExists = 17;
const errnoNotFolder = 20;
const errnoMissing = 2;

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export function withoutTrailingSlashes(path: Buffer): Buffer {
  let length = path.length;
  while (length > 1 && path[length - 1] === slash) length -= 1;
  return path.subarray(0, length);
}

/** mkdir -p. Whether the last component was made. Throws `GuestError` at step "mkdir". */
export async function makeFolders(path: Buffer, owner: Owner): Promise<boolean> {
  const whole = withoutTrailingSlashes(path);
  if (whole.length === 0) throw new GuestError(errnoMissing, "mkdir");
  let made = false;
  for (let at = 1; at <= whole.length; at += 1) {
    if (at < whole.length && whole[at] !== slash) continue;
    made = await awaiting("mkdir", makeFolder(whole.subarray(0, at), owner));
  }
  return made;
}

async function makeFolder(path: Buffer, { uid, gid }: Owner): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o755 });
  } catch (error) {
    if (errnoOf(error) !== errnoExists) throw error;
    if ((await stat(path)).isDirectory()) return false;
    throw new GuestError(errnoNotFolder, "mkdir");
  }
  // By path, not by descriptor: whoever could exchange it owns the parent inside the guest anyway.
  await lchown(path, uid, gid);
  return true;
}

/** Everything above the last component. */
export async function makeParents(path: Buffer, owner: Owner): Promise<void> {
  const at = path.lastIndexOf(slash);
  if (at > 0) await makeFolders(path.subarray(0, at), owner);
}

export async function answerMakeFolder(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const path = takePath(payload);
  const made = await makeFolders(path, { uid: payload.u32(), gid: payload.u32() });
  if (!made) throw new GuestError(errnoExists, "mkdir");
  await connection.send(encodeFrame(GuestFrame.ok, Buffer.of(1)));
}

export async function answerList(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const path = withoutTrailingSlashes(takePath(payload));
  const depth = Math.min(Math.max(payload.u32(), 1), maxDepth);
  if (path.length >= maxPathBytes - 1) throw new GuestError(36, "list");
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  const flush = async (): Promise<void> => {
    if (waitingBytes > 0)
      await connection.send(encodeFrame(GuestFrame.data, Buffer.concat(waiting, waitingBytes)));
    waiting = [];
    waitingBytes = 0;
  };
  for await (const entry of walk(path, depth)) {
    waiting.push(entry);
    waitingBytes += entry.length;
    if (waitingBytes > listFrameBytes) await flush();
    if (connection.closed) return;
  }
  await flush();
  await connection.send(new FrameBuilder(8).begin(GuestFrame.end).end().finish());
}

/** Encoded entries, depth first. Folders below the root that vanish or cannot be read are shown and not entered. */
async function* walk(folder: Buffer, depth: number): AsyncGenerator<Buffer> {
  const names = await awaiting("list", readdir(folder, { encoding: "buffer", withFileTypes: true }));
  names.sort((a, b) => Buffer.compare(a.name, b.name));
  const prefix =
    folder.at(-1) === slash || folder.length === 0 ? folder : Buffer.concat([folder, Buffer.of(slash)]);
  for (let at = 0; at < names.length; at += entriesAtOnce) {
    const found = names.slice(at, at + entriesAtOnce).map((entry) => ({
      path: Buffer.concat([prefix, entry.name]),
      enter: depth > 1 && entry.isDirectory(),
    }));
    const entries = await Promise.all(found.map(({ path }) => encodeEntry(path).catch(() => undefined)));
    for (const [index, { path, enter }] of found.entries()) {
      const entry = entries[index];
      if (entry === undefined || path.length >= maxPathBytes) continue; // it vanished
      yield entry;
      if (enter) yield* walkQuietly(path, depth - 1);
    }
  }
}

async function* walkQuietly(folder: Buffer, depth: number): AsyncGenerator<Buffer> {
  try {
    yield* walk(folder, depth);
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
  }
}
