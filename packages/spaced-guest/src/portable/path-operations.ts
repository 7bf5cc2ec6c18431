// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { lstat, open, rename, rm, stat, statfs, unlink } from "node:fs/promises";
import { encodeFrame, FrameBuilder, type PayloadReader } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { GuestFrame } from "../guest-protocol.ts";
import { syncFileSystem } from "./descriptors.ts";
import { okEntry } from "./entries.ts";
import { makeParents, withoutTrailingSlashes } from "./folders.ts";
import { awaiting, errnoOf } from "./libc.ts";
import { type PeerConnection, takePath } from "./peer-connection.ts";

const errnoMissing = 2;
const errnoBusy = 16;
const errnoNotFolder = 20;
const errnoFolder = 21;
const errnoNotPermitted = 1;

export async function answerStat(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  await connection.send(await okEntry(takePath(payload), "stat"));
}

export async function answerRename(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const from = takePath(payload);
  const to = takePath(payload);
  const owner = { uid: payload.u32(), gid: payload.u32() };
  await awaiting("rename", lstat(from));
  await makeParents(to, owner);
  await awaiting("rename", rename(from, to));
  await connection.send(await okEntry(to, "stat"));
}

export async function answerRemove(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const path = withoutTrailingSlashes(takePath(payload));
  await awaiting("remove", remove(path));
  await connection.send(encodeFrame(GuestFrame.ok));
}

async function remove(path: Buffer): Promise<void> {
  if (await isRoot(path)) throw new GuestError(errnoBusy, "remove");
  try {
    await unlink(path); // a file, or a link whatever it leads to
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === errnoMissing || errno === errnoNotFolder) return;
    if (errno !== errnoFolder && errno !== errnoNotPermitted) throw error;
    await rm(path, { recursive: true, force: true });
  }
}

async function isRoot(path: Buffer): Promise<boolean> {
  const root = await stat("/", { bigint: true });
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found?.dev === root.dev && found.ino === root.ino;
}

export async function answerSync(connection: PeerConnection): Promise<void> {
  await using root = await awaiting("sync", open("/", "r"));
  await syncFileSystem(root.fd);
  await connection.send(encodeFrame(GuestFrame.ok));
}

export async function answerStatfs(connection: PeerConnection): Promise<void> {
  const { blocks, bavail, bsize } = await awaiting("statfs", statfs("/", { bigint: true }));
  const answer = new FrameBuilder(32)
    .begin(GuestFrame.ok)
    .u64(blocks * bsize)
    .u64(bavail * bsize);
  await connection.send(answer.end().finish());
}
