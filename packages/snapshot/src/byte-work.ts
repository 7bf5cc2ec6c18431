// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createCipheriv, createDecipheriv, hash, webcrypto } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from "node:zlib";
import { type Digest, parseDigest } from "@space/model";

// Above this, compression is done on other threads, so that a long snapshot takes no long turn from anybody; below, the way
// there and back costs more than the work.
const offThreadBytes = 32 * 1024;
// Hashing and encrypting are quicker by far, and the way there copies: done on the spot, nearly every chunk takes a
// millisecond or two of one thread, and half of the processor's time in all.
const cryptOffThreadBytes = 1024 * 1024;
const level = { [constants.ZSTD_c_compressionLevel]: 1 };
/** What is handed out at once has this length at least: without it, 16 KiB a turn. */
const leastTurnBytes = 1024;
const compressOff = promisify(zstdCompress);
const decompressOff = promisify(zstdDecompress);
const tagBytes = 16;

/** What WebCrypto takes: bytes that no other thread can share. */
type Plain = Uint8Array<ArrayBuffer>;

/** SHA-256. */
export async function digestOf(bytes: Uint8Array): Promise<Digest> {
  if (bytes.length <= cryptOffThreadBytes) return parseDigest(hash("sha256", bytes, "hex"));
  return parseDigest(Buffer.from(await webcrypto.subtle.digest("SHA-256", owned(bytes))).toString("hex"));
}

/** Enough to tell random or encrypted bytes from all others, for a hundredth of what compressing them in vain costs. */
const samples = 8;
const sampleBytes = 2048;

/** False where parts of the content from all over it, compressed together, save less than a sixteenth. */
export function seemsCompressible(bytes: Uint8Array): boolean {
  if (bytes.length < 2 * samples * sampleBytes) return true;
  const apart = Math.floor((bytes.length - sampleBytes) / (samples - 1));
  const parts = Array.from({ length: samples }, (_, at) =>
    bytes.subarray(at * apart, at * apart + sampleBytes),
  );
  const sampled = Buffer.concat(parts);
  const compressed = zstdCompressSync(sampled, { params: level, chunkSize: sampled.length + leastTurnBytes });
  return compressed.length < sampled.length - sampled.length / 16;
}

/** zstd at its quickest. */
export async function compress(bytes: Uint8Array): Promise<Uint8Array> {
  const options = { params: level, chunkSize: bytes.length + leastTurnBytes };
  return bytes.length < offThreadBytes ? zstdCompressSync(bytes, options) : compressOff(bytes, options);
}

/** Undefined for what is not zstd, or is longer than `limitBytes` when it is decompressed. */
export async function decompress(bytes: Uint8Array, limitBytes: number): Promise<Uint8Array | undefined> {
  const options = { maxOutputLength: limitBytes, chunkSize: limitBytes + leastTurnBytes };
  try {
    return limitBytes < offThreadBytes
      ? zstdDecompressSync(bytes, options)
      : await decompressOff(bytes, options);
  } catch {
    return undefined; // the caller names what it is that is damaged
  }
}

/** What AES-256-GCM needs besides the text. */
export interface GcmParameters {
  readonly key: Uint8Array;
  readonly nonce: Uint8Array;
  /** Authenticated with the text, and not encrypted. */
  readonly header: Uint8Array;
}

/** The header, the ciphertext and behind it the tag, all in one piece. */
export async function encrypt(bytes: Uint8Array, { key, nonce, header }: GcmParameters): Promise<Uint8Array> {
  if (bytes.length <= cryptOffThreadBytes) {
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(header);
    return Buffer.concat([header, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }
  const imported = await importKey(key, "encrypt");
  const sealed = await webcrypto.subtle.encrypt(algorithm(nonce, header), imported, owned(bytes));
  return Buffer.concat([header, new Uint8Array(sealed)]);
}

/** Undefined where one bit of text, tag, header, nonce or key is another. */
export async function decrypt(
  sealed: Uint8Array,
  { key, nonce, header }: GcmParameters,
): Promise<Uint8Array | undefined> {
  if (sealed.length < tagBytes) return undefined;
  try {
    if (sealed.length <= cryptOffThreadBytes) {
      const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes }).setAAD(
        header,
      );
      decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
      const text = decipher.update(sealed.subarray(0, -tagBytes));
      decipher.final(); // throws where the tag is another; there is no more text
      return text;
    }
    const imported = await importKey(key, "decrypt");
    return new Uint8Array(await webcrypto.subtle.decrypt(algorithm(nonce, header), imported, owned(sealed)));
  } catch {
    return undefined; // not authentic: there is nothing more to say
  }
}

function importKey(key: Uint8Array, use: "encrypt" | "decrypt"): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey("raw", owned(key), "AES-GCM", false, [use]);
}

function algorithm(nonce: Uint8Array, header: Uint8Array): webcrypto.AesGcmParams {
  return { name: "AES-GCM", iv: owned(nonce), additionalData: owned(header), tagLength: tagBytes * 8 };
}

function owned(bytes: Uint8Array): Plain {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Plain) : Uint8Array.from(bytes); // cast: just looked
}
