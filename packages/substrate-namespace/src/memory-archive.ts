// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createReadStream } from "node:fs";
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { SpaceError } from "@space/model";
import type { ByteReader } from "./byte-reader.ts";

/** What an image says of where it can be restored. */
export interface MemoryOrigin {
  /** The version of CRIU: no other restores it. */
  readonly criu: string;
  /** The processor's features: all of them must be there. */
  readonly features: readonly string[];
}

/** What is told of a guest's memory before its bytes. */
export interface MemoryNote extends MemoryOrigin {
  /** SHA-256 of the guest's program, which its pid 1 runs: it is restored with that very one. */
  readonly program: string;
  /** The guest's: its processes have not been started anew. */
  readonly bootId: string;
}

interface MemoryHeader extends MemoryNote {
  readonly files: readonly { readonly name: string; readonly sizeBytes: number }[];
}

/** What the shared memory folder held, as tar writes it; absent when it was empty. */
export const sharedMemoryName = "shm.tar";
export const programName = "program";

const magic = Buffer.from("space-criu-image-1\n");
const headerLimitBytes = 1024 * 1024;
const lengthBytes = 4;
const nameForm = /^(?:[a-z0-9][a-z0-9_-]{0,60}\.img|shm\.tar|program)$/;
const digestForm = /^[0-9a-f]{64}$/;
const bootIdForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether an archive begins with memory; what does not is a layer alone. */
export function holdsMemory(reader: ByteReader): Promise<boolean> {
  return reader.startsWith(magic);
}

/** The files of an image, with what is to be known of them first. A layer's archive may follow. */
export async function* archiveMemory(folder: string, note: MemoryNote): AsyncGenerator<Uint8Array> {
  const names = (await readdir(folder)).filter((name) => nameForm.test(name)).sort();
  const files = await Promise.all(
    names.map(async (name) => ({ name, sizeBytes: (await stat(join(folder, name))).size })),
  );
  const { criu, features, program, bootId } = note;
  const header = Buffer.from(
    JSON.stringify({ criu, features, program, bootId, files } satisfies MemoryHeader),
  );
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(header.length);
  yield Buffer.concat([magic, length, header]);
  for (const { name } of files) {
    for await (const chunk of createReadStream(join(folder, name), { highWaterMark: 1024 * 1024 }))
      if (chunk instanceof Uint8Array) yield chunk;
  }
}

/**
 * Writes the files of such an archive into an empty folder, and leaves the reader at what follows. Throws
 * `snapshot/refused` for any other, or for one that does not fit here.
 */
export async function unpackMemory(
  folder: string,
  here: MemoryOrigin,
  reader: ByteReader,
): Promise<MemoryNote> {
  if (!(await reader.exactly(magic.length)).equals(magic)) throw refused("form");
  const length = (await reader.exactly(lengthBytes)).readUInt32LE();
  if (length > headerLimitBytes) throw refused("form");
  const header = parseHeader(await reader.exactly(length));
  requireFit(header, here);
  for (const { name, sizeBytes } of header.files) {
    const file = await open(join(folder, name), "wx", 0o600);
    try {
      await copy(reader, file, sizeBytes);
    } finally {
      await file.close();
    }
  }
  return header;
}

function requireFit(image: MemoryOrigin, here: MemoryOrigin): void {
  if (image.criu !== here.criu) throw refused(`made by CRIU ${image.criu}, and this is CRIU ${here.criu}`);
  const lacking = image.features.find((feature) => !here.features.includes(feature));
  if (lacking !== undefined) throw refused(`made on a processor with ${lacking}, which this one lacks`);
}

async function copy(reader: ByteReader, file: FileHandle, sizeBytes: number): Promise<void> {
  for (let left = sizeBytes; left > 0; ) {
    const piece = await reader.some(left);
    await file.writeFile(piece);
    left -= piece.length;
  }
}

function parseHeader(bytes: Buffer): MemoryHeader {
  const { criu, features, program, bootId, files } = asRecord(parseJson(bytes));
  const said = matching(program, digestForm) && matching(bootId, bootIdForm) && typeof criu === "string";
  if (!said || !isTexts(features) || !Array.isArray(files)) throw refused("form");
  const parsed = files.map((file: unknown) => {
    const { name, sizeBytes } = asRecord(file);
    if (!matching(name, nameForm)) throw refused("form");
    if (typeof sizeBytes !== "number" || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
      throw refused("form");
    return { name, sizeBytes };
  });
  const names = new Set(parsed.map(({ name }) => name));
  if (names.size !== parsed.length || !names.has(programName)) throw refused("form");
  return { criu, features, program, bootId, files: parsed };
}

function matching(value: unknown, form: RegExp): value is string {
  return typeof value === "string" && form.test(value);
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new SpaceError("snapshot/refused", { problem: "form" }, { cause });
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) throw refused("form");
  return Object.fromEntries(Object.entries(value));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function refused(problem: string): SpaceError {
  return new SpaceError("snapshot/refused", { problem });
}
