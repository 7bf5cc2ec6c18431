// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Digest, type Random, SpaceError } from "@space/model";
import { compress, decompress, decrypt, digestOf, encrypt, seemsCompressible } from "./byte-work.ts";
import type { TenantSecrets } from "./tenant-secrets.ts";

/** Longest content of one sealed chunk. */
export const chunkLimitBytes: number = 16 * 1024 * 1024;

/** The one form that there is. */
const version = 1;
const plainEncoding = 0;
const zstdEncoding = 1;
/** Below it a chunk takes one block of a disk whether it is compressed or not. */
const compressFromBytes = 4096;
const nonceBytes = 12;
const tagBytes = 16;

// version, encoding, name in the store, length of the content, length of the body, nonce; then the body with its tag.
const offsets = { name: 2, contentLength: 34, bodyLength: 38, nonce: 42, body: 54 } as const;
/** Longest sealed chunk: what does not compress is stored as it is. */
export const sealedLimitBytes: number = chunkLimitBytes + offsets.body + tagBytes;

export interface Sealing {
  readonly secrets: TenantSecrets;
  readonly random: Random;
  /** Not compressed, also where that would help. */
  readonly isPlain?: boolean;
}

/** Seals content of this digest, compressed where that helps. The nonce is drawn anew each time: zstd may change. */
export async function sealChunk(
  content: Uint8Array,
  { digest, name }: { readonly digest: Digest; readonly name: string },
  { secrets, random, isPlain = false }: Sealing,
): Promise<Uint8Array> {
  if (content.length > chunkLimitBytes)
    throw new SpaceError("input/too-large", { what: "chunk", limitBytes: chunkLimitBytes });
  const isWorthIt = !isPlain && content.length >= compressFromBytes && seemsCompressible(content);
  const compressed = isWorthIt ? await compress(content) : content;
  const isSmaller = compressed.length < content.length;
  const body = isSmaller ? compressed : content;
  const header = Buffer.alloc(offsets.body);
  header[0] = version;
  header[1] = isSmaller ? zstdEncoding : plainEncoding;
  header.set(Buffer.from(name, "hex"), offsets.name);
  header.writeUInt32BE(content.length, offsets.contentLength);
  header.writeUInt32BE(body.length + tagBytes, offsets.bodyLength);
  const nonce = random.bytes(nonceBytes);
  header.set(nonce, offsets.nonce);
  return encrypt(body, { key: secrets.chunkKey(digest), nonce, header });
}

/**
 * The content that has this digest, and nothing else. Throws `chunk/truncated`, `chunk/version`, `chunk/misplaced` or
 * `chunk/damaged`, in this order, whatever the bytes are.
 */
export async function openChunk(
  stored: Uint8Array,
  { digest, name }: { readonly digest: Digest; readonly name: string },
  secrets: TenantSecrets,
): Promise<Uint8Array> {
  const sealed = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const header = readHeader(sealed, name);
  const key = secrets.chunkKey(digest);
  const { nonce } = header;
  const body = await decrypt(sealed.subarray(offsets.body), {
    key,
    nonce,
    header: sealed.subarray(0, offsets.body),
  });
  if (body === undefined) throw new SpaceError("chunk/damaged", { name });
  const content = header.isCompressed ? await decompress(body, Math.max(header.contentLength, 1)) : body;
  // Whoever has the tenant's key can seal anything: only the digest says that it is what the manifest names.
  if (content?.length !== header.contentLength || (await digestOf(content)) !== digest)
    throw new SpaceError("chunk/damaged", { name });
  return content;
}

interface Header {
  readonly isCompressed: boolean;
  readonly contentLength: number;
  readonly nonce: Uint8Array;
}

function readHeader(sealed: Buffer, name: string): Header {
  if (sealed.length < offsets.body + tagBytes) throw new SpaceError("chunk/truncated", { name });
  const [found = 0, encoding] = sealed;
  if (found !== version) throw new SpaceError("chunk/version", { version: found });
  if (sealed.toString("hex", offsets.name, offsets.contentLength) !== name)
    throw new SpaceError("chunk/misplaced", { name });
  const missing = sealed.readUInt32BE(offsets.bodyLength) - (sealed.length - offsets.body);
  if (missing > 0) throw new SpaceError("chunk/truncated", { name });
  const contentLength = sealed.readUInt32BE(offsets.contentLength);
  const isKnown = encoding === plainEncoding || encoding === zstdEncoding;
  if (missing < 0 || !isKnown || contentLength > chunkLimitBytes)
    throw new SpaceError("chunk/damaged", { name });
  return {
    isCompressed: encoding === zstdEncoding,
    contentLength,
    nonce: sealed.subarray(offsets.nonce, offsets.body),
  };
}
