// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The files of a saved process as one stream: a mark, what they are and where they fit, then their bytes. Every driver that
// saves memory writes them so, each with its own mark and header.

import { createReadStream } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { SpaceError } from "@space/model";
import type { ByteReader } from "./byte-reader.ts";

const lengthBytes = 4;

export interface ImageFilesForm<Note> {
  /** What such a stream begins with. */
  readonly magic: Buffer;
  readonly headerLimitBytes: number;
  readonly isName: (name: string) => boolean;
  /** Reads what is told beside the files. Throws `snapshot/refused` for what is not of its form, or does not fit here. */
  readonly readNote: (header: Readonly<Record<string, unknown>>, names: ReadonlySet<string>) => Note;
}

interface ImageFile {
  readonly name: string;
  readonly sizeBytes: number;
}

/** These files of a folder, with what is to be known of them first. */
export async function* archiveImageFiles(
  folder: string,
  names: readonly string[],
  { magic, note }: { readonly magic: Buffer; readonly note: object },
): AsyncGenerator<Uint8Array> {
  const files: ImageFile[] = await Promise.all(
    names.map(async (name) => ({ name, sizeBytes: (await stat(join(folder, name))).size })),
  );
  const header = Buffer.from(JSON.stringify({ ...note, files }));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(header.length);
  yield Buffer.concat([magic, length, header]);
  for (const { name } of files) {
    for await (const chunk of createReadStream(join(folder, name), { highWaterMark: 1024 * 1024 }))
      if (chunk instanceof Uint8Array) yield chunk;
  }
}

/**
 * Writes the files of such a stream into an empty folder, and leaves the reader at what follows. Throws `snapshot/refused`
 * for any other, or what `readNote` throws; then nothing was written.
 */
export async function unpackImageFiles<Note>(
  folder: string,
  { magic, headerLimitBytes, isName, readNote }: ImageFilesForm<Note>,
  reader: ByteReader,
): Promise<Note> {
  if (!(await reader.exactly(magic.length)).equals(magic)) throw refusedImage("form");
  const length = (await reader.exactly(lengthBytes)).readUInt32LE();
  if (length > headerLimitBytes) throw refusedImage("form");
  const header = asRecord(parseJson(await reader.exactly(length)));
  const files = readFiles(header["files"], isName);
  const note = readNote(header, new Set(files.map(({ name }) => name)));
  for (const { name, sizeBytes } of files) {
    const file = await open(join(folder, name), "wx", 0o600);
    try {
      await copy(reader, file, sizeBytes);
    } finally {
      await file.close();
    }
  }
  return note;
}

/** Every feature of the processor that an image was made on must be there. Throws `snapshot/refused`. */
export function requireFeatures(made: readonly string[], here: readonly string[]): void {
  const lacking = made.find((feature) => !here.includes(feature));
  if (lacking !== undefined) throw refusedImage(`made on a processor with ${lacking}, which this one lacks`);
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

export function refusedImage(problem: string): SpaceError {
  return new SpaceError("snapshot/refused", { problem });
}

function readFiles(value: unknown, isName: (name: string) => boolean): readonly ImageFile[] {
  if (!Array.isArray(value)) throw refusedImage("form");
  const files = value.map((file: unknown) => {
    const { name, sizeBytes } = asRecord(file);
    if (typeof name !== "string" || !isName(name)) throw refusedImage("form");
    if (typeof sizeBytes !== "number" || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
      throw refusedImage("form");
    return { name, sizeBytes };
  });
  if (new Set(files.map(({ name }) => name)).size !== files.length) throw refusedImage("form");
  return files;
}

async function copy(reader: ByteReader, file: FileHandle, sizeBytes: number): Promise<void> {
  for (let left = sizeBytes; left > 0; ) {
    const piece = await reader.some(left);
    await file.writeFile(piece);
    left -= piece.length;
  }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new SpaceError("snapshot/refused", { problem: "form" }, { cause });
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) throw refusedImage("form");
  return Object.fromEntries(Object.entries(value));
}
