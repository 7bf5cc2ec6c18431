// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readdir } from "node:fs/promises";
import type { ByteReader } from "./byte-reader.ts";
import {
  archiveImageFiles,
  isTexts,
  refusedImage,
  requireFeatures,
  unpackImageFiles,
} from "./image-files.ts";

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

/** What the shared memory folder held, as tar writes it; absent when it was empty. */
export const sharedMemoryName = "shm.tar";
export const programName = "program";

const magic = Buffer.from("space-criu-image-1\n");
const headerLimitBytes = 1024 * 1024;
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
  const { criu, features, program, bootId } = note;
  yield* archiveImageFiles(folder, names, {
    magic,
    note: { criu, features, program, bootId } satisfies MemoryNote,
  });
}

/**
 * Writes the files of such an archive into an empty folder, and leaves the reader at what follows. Throws
 * `snapshot/refused` for any other, or for one that does not fit here.
 */
export function unpackMemory(folder: string, here: MemoryOrigin, reader: ByteReader): Promise<MemoryNote> {
  const isName = (name: string): boolean => nameForm.test(name);
  const form = {
    ...{ magic, headerLimitBytes, isName },
    readNote: (header: Readonly<Record<string, unknown>>, names: ReadonlySet<string>): MemoryNote => {
      const note = parseNote(header);
      if (!names.has(programName)) throw refusedImage("form");
      requireFit(note, here);
      return note;
    },
  };
  return unpackImageFiles(folder, form, reader);
}

function requireFit(image: MemoryOrigin, here: MemoryOrigin): void {
  if (image.criu !== here.criu)
    throw refusedImage(`made by CRIU ${image.criu}, and this is CRIU ${here.criu}`);
  requireFeatures(image.features, here.features);
}

function parseNote({ criu, features, program, bootId }: Readonly<Record<string, unknown>>): MemoryNote {
  const said = matching(program, digestForm) && matching(bootId, bootIdForm) && typeof criu === "string";
  if (!said || !isTexts(features)) throw refusedImage("form");
  return { criu, features, program, bootId };
}

function matching(value: unknown, form: RegExp): value is string {
  return typeof value === "string" && form.test(value);
}
