// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the snapshot package's `byte-work.ts` (see loader.ts): digests are real; nothing is compressed, and what is
// "encrypted" is plain, with a tag that fits these bytes under this key and no others. What has the same tag is opened to
// the same object, so that what is known of its bytes needs no second look. Everything is done at once, as a world's loop
// asks for.

import { hash } from "node:crypto";
import type { Digest } from "@space/model";
import { withBytes } from "./byte-mix.ts";

const tagBytes = 16;

/** As in the real module. */
interface GcmParameters {
  readonly key: Uint8Array;
  readonly nonce: Uint8Array;
  readonly header: Uint8Array;
}

/** Of bytes that nobody changes, as no chunk's are. */
const digests = new WeakMap<Uint8Array, Digest>();

export async function digestOf(bytes: Uint8Array): Promise<Digest> {
  const digest = digests.get(bytes) ?? (hash("sha256", bytes, "hex") as Digest); // cast: as SHA-256 is written
  digests.set(bytes, digest);
  return digest;
}

export function seemsCompressible(): boolean {
  return false;
}

export async function compress(bytes: Uint8Array): Promise<Uint8Array> {
  return bytes;
}

export async function decompress(): Promise<undefined> {
  return undefined; // nothing is compressed, so what says that it is has been altered
}

export async function encrypt(bytes: Uint8Array, parameters: GcmParameters): Promise<Uint8Array> {
  return Buffer.concat([parameters.header, bytes, tagOf(bytes, parameters)]);
}

export async function decrypt(
  sealed: Uint8Array,
  parameters: GcmParameters,
): Promise<Uint8Array | undefined> {
  if (sealed.length < tagBytes) return undefined;
  const bytes = sealed.subarray(0, -tagBytes);
  const tag = tagOf(bytes, parameters);
  if (!tag.equals(sealed.subarray(-tagBytes))) return undefined;
  const name = tag.toString("latin1");
  const known = opened.get(name) ?? bytes;
  if (opened.size >= openedLimit) opened.clear();
  opened.set(name, known);
  return known;
}

/** What was opened, by its tag; begun anew when it is full. */
const openedLimit = 2048;
const opened = new Map<string, Uint8Array>();

function tagOf(bytes: Uint8Array, { key, nonce, header }: GcmParameters): Buffer {
  let words: readonly [number, number] = [0x811c9dc5, bytes.length];
  for (const part of [key, nonce, header, bytes])
    words = withBytes(words, Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  const tag = Buffer.alloc(tagBytes);
  tag.writeInt32LE(words[0], 0);
  tag.writeInt32LE(words[1], 4);
  return tag;
}
