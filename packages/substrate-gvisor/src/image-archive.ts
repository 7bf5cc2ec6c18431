// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readdir } from "node:fs/promises";
import { SpaceError } from "@space/model";
import {
  archiveImageFiles,
  ByteReader,
  isTexts,
  refusedImage,
  requireFeatures,
  unpackImageFiles,
} from "@space/substrate-namespace";

/** What an image says of where it can be restored. */
export interface ImageOrigin {
  /** The build of runsc: no other restores it. */
  readonly runsc: string;
  /** The processor's features: all of them must be there. */
  readonly features: readonly string[];
}

/** Files that a checkpoint consists of, for the builds that are accepted. */
const imageFiles: ReadonlySet<string> = new Set(["checkpoint.img", "pages.img", "pages_meta.img"]);
const magic = Buffer.from("space-gvisor-image-1\n");
const headerLimitBytes = 64 * 1024;

/** One stream of a checkpoint's files: what they are and where they fit, then their bytes. */
export async function* archiveImage(folder: string, origin: ImageOrigin): AsyncGenerator<Uint8Array> {
  const names = (await readdir(folder)).sort();
  if (names.length === 0 || names.some((name) => !imageFiles.has(name)))
    throw new SpaceError("substrate/failed", { step: "archive" });
  const { runsc, features } = origin;
  yield* archiveImageFiles(folder, names, { magic, note: { runsc, features } satisfies ImageOrigin });
}

/** Writes the files of such a stream into an empty folder. Throws `snapshot/refused` for any other, or one that does not fit here. */
export async function restoreImage(
  folder: string,
  here: ImageOrigin,
  archive: AsyncIterable<Uint8Array>,
): Promise<void> {
  const reader = new ByteReader(archive);
  const isName = (name: string): boolean => imageFiles.has(name);
  const form = {
    ...{ magic, headerLimitBytes, isName },
    readNote: (header: Readonly<Record<string, unknown>>, names: ReadonlySet<string>): void => {
      const origin = parseOrigin(header);
      if (names.size === 0) throw refusedImage("form");
      requireFit(origin, here);
    },
  };
  await unpackImageFiles(folder, form, reader);
  if (!(await reader.atEnd())) throw refusedImage("form");
}

function requireFit(image: ImageOrigin, here: ImageOrigin): void {
  if (image.runsc !== here.runsc) throw refusedImage(`made by ${image.runsc}, and this is ${here.runsc}`);
  requireFeatures(image.features, here.features);
}

function parseOrigin({ runsc, features }: Readonly<Record<string, unknown>>): ImageOrigin {
  if (typeof runsc !== "string" || !isTexts(features)) throw refusedImage("form");
  return { runsc, features };
}
