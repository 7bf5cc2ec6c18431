// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { carriedLimitBytes, SpaceError } from "@space/model";

/** No archive of a driver's begins like this. */
const mark = Buffer.from("space-carried/1\n");
const lengthBytes = 4;
const headBytes = mark.length + lengthBytes;

/**
 * an archive with what the bridge knows of the guest's streams before it: `mark`, `u32 length` (big-endian), so many
 * bytes, and the driver's archive. It is sealed, and restored, with the memory that it speaks of or not at all.
 */
export async function* withCarried(
  carried: Buffer | undefined,
  archive: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (carried !== undefined) {
    const length = Buffer.alloc(lengthBytes);
    length.writeUInt32BE(carried.length);
    yield Buffer.concat([mark, length, carried]);
  }
  yield* archive;
}

export interface TakenApart {
  /** Undefined: none was known. */
  readonly carried: Buffer | undefined;
  /** The driver's own. */
  readonly archive: AsyncIterable<Uint8Array>;
  /** Lets go of what has not been read. */
  close(): Promise<void>;
}

/** Throws `snapshot/refused` for what ends too soon or is too long, and what reading throws. */
export async function takeApart(archive: AsyncIterable<Uint8Array>): Promise<TakenApart> {
  const source = archive[Symbol.asyncIterator]();
  const close = async (): Promise<void> => {
    await source.return?.();
  };
  try {
    const held = await readUpTo(source, Buffer.alloc(0), headBytes);
    if (!held.subarray(0, mark.length).equals(mark))
      return { carried: undefined, archive: rest(held, source), close };
    const length = held.length < headBytes ? 0 : held.readUInt32BE(mark.length);
    if (held.length < headBytes || length > carriedLimitBytes) throw refused();
    const whole = await readUpTo(source, held, headBytes + length);
    if (whole.length < headBytes + length) throw refused();
    const carried = Buffer.from(whole.subarray(headBytes, headBytes + length));
    return { carried, archive: rest(whole.subarray(headBytes + length), source), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function readUpTo(source: AsyncIterator<Uint8Array>, held: Buffer, bytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = [held];
  let size = held.length;
  while (size < bytes) {
    const next = await source.next();
    if (next.done === true) break;
    parts.push(next.value);
    size += next.value.length;
  }
  return Buffer.concat(parts);
}

async function* rest(held: Buffer, source: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (held.length > 0) yield held;
  for (;;) {
    const next = await source.next();
    if (next.done === true) return;
    yield next.value;
  }
}

function refused(): SpaceError {
  return new SpaceError("snapshot/refused", { problem: "what it knows of its streams is not whole" });
}
