// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { encodeFrame, FrameBuilder, type PayloadReader } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { fetchLimitBytes, GuestFrame, toTheEnd } from "../guest-protocol.ts";
import { okEntry } from "./entries.ts";
import { makeParents } from "./folders.ts";
import { awaiting, errnoOf } from "./libc.ts";
import { type PeerConnection, takePath } from "./peer-connection.ts";

const chunkBytes = 60 * 1024;
const maxOffset = 0x7fff_ffff_ffff_ffffn;
const errnoAgain = 11;
const errnoExists = 17;
const errnoFolder = 21;
const errnoInvalid = 22;
const errnoTooLarge = 27;
const nanosecondsOfOne = 1_000_000_000n;
const { O_APPEND, O_CREAT, O_EXCL, O_NOCTTY, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
const quietly = O_NONBLOCK | O_NOCTTY;

/** READ. Frames gather up to a chunk, so that a small file leaves in one write. */
export async function answerRead(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const path = takePath(payload);
  const offset = payload.u64();
  const length = payload.u64();
  await using file = await awaiting("open", open(path, O_RDONLY | quietly));
  const status = await awaiting("read", file.stat());
  if (status.isDirectory()) throw new GuestError(errnoFolder, "read");
  if (offset > maxOffset) throw new GuestError(errnoInvalid, "read");
  const entry = await okEntry(path, "read");
  await sendContent(connection, file, {
    first: entry,
    position: status.isFile() ? offset : undefined,
    length,
  });
}

/** FETCH: a small plain file, whole, in one frame. */
export async function answerFetch(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const path = takePath(payload);
  const limit = Math.min(payload.u32(), fetchLimitBytes);
  await using file = await awaiting("open", open(path, O_RDONLY | quietly));
  const status = await awaiting("read", file.stat({ bigint: true }));
  if (status.isDirectory()) throw new GuestError(errnoFolder, "read");
  if (!status.isFile() || status.size > BigInt(limit)) throw new GuestError(errnoTooLarge, "read");
  const content = await smallContent(file, limit);
  const seconds = status.mtimeNs / nanosecondsOfOne; // none is before 1970 here, so no rounding towards zero
  const frame = new FrameBuilder(64 + content.length).begin(GuestFrame.content).u64(status.size);
  frame
    .i64(seconds)
    .u32(Number(status.mtimeNs - seconds * nanosecondsOfOne))
    .raw(content);
  await connection.send(frame.end().finish());
}

async function smallContent(file: FileHandle, limit: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let total = 0;
  for (;;) {
    const { bytesRead, buffer } = await awaiting("read", readChunk(file, limit + 1 - total, BigInt(total)));
    if (bytesRead === 0) return Buffer.concat(pieces, total);
    pieces.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
    if (total > limit) throw new GuestError(errnoTooLarge, "read");
  }
}

interface Content {
  readonly first: Buffer;
  /** Undefined for what has no positions: a pipe, a device. */
  readonly position: bigint | undefined;
  readonly length: bigint;
}

async function sendContent(connection: PeerConnection, file: FileHandle, content: Content): Promise<void> {
  let waiting: Buffer[] = [content.first];
  let { position } = content;
  let left = content.length;
  const flush = async (): Promise<void> => {
    const bytes = Buffer.concat(waiting);
    waiting = [];
    await connection.send(bytes);
  };
  try {
    while (left > 0n && !connection.closed) {
      const wanted = left === toTheEnd || left > BigInt(chunkBytes) ? chunkBytes : Number(left);
      const { bytesRead, buffer } = await awaiting("read", readChunk(file, wanted, position));
      if (bytesRead === 0) break;
      waiting.push(encodeFrame(GuestFrame.data, buffer.subarray(0, bytesRead)));
      left -= BigInt(bytesRead);
      if (position !== undefined) position += BigInt(bytesRead);
      if (waiting.length > 1 && bytesRead === wanted) await flush();
    }
    waiting.push(encodeFrame(GuestFrame.end));
    await flush();
  } catch (error) {
    await flush(); // what precedes is whole
    throw error;
  }
}

/** An empty pipe has no content now: that is its end. */
async function readChunk(
  file: FileHandle,
  length: number,
  position: bigint | undefined,
): Promise<{ readonly bytesRead: number; readonly buffer: Buffer }> {
  const buffer = Buffer.allocUnsafe(length);
  try {
    const { bytesRead } = await file.read(buffer, 0, length, position ?? null);
    return { bytesRead, buffer };
  } catch (error) {
    if (errnoOf(error) === errnoAgain) return { bytesRead: 0, buffer };
    throw error;
  }
}

interface WriteRequest {
  readonly path: Buffer;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly parents: boolean;
  readonly append: boolean;
}

function decodeWrite(payload: PayloadReader): WriteRequest {
  const path = takePath(payload);
  const mode = payload.u32() & 0o7777;
  const owner = { uid: payload.u32(), gid: payload.u32() };
  return { path, mode, ...owner, parents: payload.u8() !== 0, append: (payload.u8() & 1) !== 0 };
}

/** WRITE. Takes DATA up to END whatever happens, so that the next frame is an operation again. */
export async function answerWrite(connection: PeerConnection, payload: PayloadReader): Promise<void> {
  const request = decodeWrite(payload);
  let failure: unknown;
  let file: FileHandle | undefined;
  try {
    file = await openForWriting(request);
  } catch (error) {
    failure = error;
  }
  for (;;) {
    const frame = await connection.next();
    if (frame?.type !== GuestFrame.data && frame?.type !== GuestFrame.end) {
      await file?.close();
      connection.close(); // gone, or it broke the protocol
      return;
    }
    if (frame.type === GuestFrame.end) break;
    if (failure !== undefined || file === undefined) continue;
    try {
      await awaiting("write", writeWholly(file, frame.payload));
    } catch (error) {
      failure = error;
    }
  }
  await awaiting("write", file?.close() ?? Promise.resolve()).catch((error: unknown) => {
    failure ??= error;
  });
  if (failure !== undefined) throw failure; // oxlint-disable-line typescript/only-throw-error -- thrown on as it came
  await connection.send(await okEntry(request.path, "stat"));
}

async function writeWholly(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}

async function openForWriting(request: WriteRequest): Promise<FileHandle> {
  const { path, mode, uid, gid, parents, append } = request;
  if (parents) await makeParents(path, request);
  const flags = O_WRONLY | quietly | (append ? O_APPEND : O_TRUNC);
  let created = true;
  const file = await awaiting(
    "open",
    open(path, flags | O_CREAT | O_EXCL, mode).catch((error: unknown) => {
      if (errnoOf(error) !== errnoExists) throw error;
      created = false;
      return open(path, flags | O_CREAT, mode);
    }),
  );
  try {
    await awaiting("chown", file.chown(uid, gid));
    if (created) await awaiting("chown", file.chmod(mode));
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
