// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createReadStream } from "node:fs";
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { SpaceError } from "@space/model";
import { ByteReader } from "@space/substrate-namespace";

/** What an image says of where it can be restored. */
export interface ImageOrigin {
  /** The build of runsc: no other restores it. */
  readonly runsc: string;
  /** The processor's features: all of them must be there. */
  readonly features: readonly string[];
}

interface ImageHeader extends ImageOrigin {
  readonly files: readonly { readonly name: string; readonly sizeBytes: number }[];
}

/** Files that a checkpoint consists of, for the builds that are accepted. */
const imageFiles: ReadonlySet<string> = new Set(["checkpoint.img", "pages.img", "pages_meta.img"]);
const magic = Buffer.from("space-gvisor-image-1\n");
const headerLimitBytes = 64 * 1024;
const lengthBytes = 4;

/** One stream of a checkpoint's files: what they are and where they fit, then their bytes. */
export async function* archiveImage(folder: string, origin: ImageOrigin): AsyncGenerator<Uint8Array> {
  const names = (await readdir(folder)).sort();
  const files = await Promise.all(
    names.map(async (name) => ({ name, sizeBytes: (await stat(join(folder, name))).size })),
  );
  if (files.length === 0 || files.some(({ name }) => !imageFiles.has(name)))
    throw new SpaceError("substrate/failed", { step: "archive" });
  const { runsc, features } = origin;
  const header = Buffer.from(JSON.stringify({ runsc, features, files } satisfies ImageHeader));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(header.length);
  yield Buffer.concat([magic, length, header]);
  for (const { name } of files) {
    for await (const chunk of createReadStream(join(folder, name), { highWaterMark: 1024 * 1024 }))
      if (chunk instanceof Uint8Array) yield chunk;
  }
}

/** Writes the files of such a stream into an empty folder. Throws `snapshot/refused` for any other, or one that does not fit here. */
export async function restoreImage(
  folder: string,
  here: ImageOrigin,
  archive: AsyncIterable<Uint8Array>,
): Promise<void> {
  const reader = new ByteReader(archive);
  if (!(await reader.exactly(magic.length)).equals(magic)) throw refused("form");
  const length = (await reader.exactly(lengthBytes)).readUInt32LE();
  if (length > headerLimitBytes) throw refused("form");
  const header = parseHeader(await reader.exactly(length));
  checkFits(header, here);
  for (const { name, sizeBytes } of header.files) {
    const file = await open(join(folder, name), "wx", 0o600);
    try {
      await copy(reader, file, sizeBytes);
    } finally {
      await file.close();
    }
  }
  if (!(await reader.atEnd())) throw refused("form");
}

function checkFits(image: ImageOrigin, here: ImageOrigin): void {
  if (image.runsc !== here.runsc) throw refused(`made by ${image.runsc}, and this is ${here.runsc}`);
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

function parseHeader(bytes: Buffer): ImageHeader {
  const value = asRecord(parseJson(bytes));
  const { runsc, features, files } = value;
  if (typeof runsc !== "string" || !isTexts(features) || !Array.isArray(files)) throw refused("form");
  const parsed = files.map((file: unknown) => {
    const { name, sizeBytes } = asRecord(file);
    if (typeof name !== "string" || !imageFiles.has(name)) throw refused("form");
    if (typeof sizeBytes !== "number" || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
      throw refused("form");
    return { name, sizeBytes };
  });
  if (parsed.length === 0 || new Set(parsed.map(({ name }) => name)).size !== parsed.length)
    throw refused("form");
  return { runsc, features, files: parsed };
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
