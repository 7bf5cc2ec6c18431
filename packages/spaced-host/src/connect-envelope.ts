// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { EnvdError } from "./envd-error.ts";

/** Largest message of one call, compressed or not. */
export const messageLimitBytes: number = 4 * 1024 * 1024;

export const envelopeHeaderBytes = 5;
const compressedFlag = 1;
const endOfStreamFlag = 2;

const gunzipAsync = promisify(gunzip);

/** `u8 flags, u32 length` before a message. */
export function writeEnvelopeHeader(into: Buffer, flags: number, messageBytes: number): void {
  into[0] = flags;
  into.writeUInt32BE(messageBytes, 1);
}

/** A message in its envelope. */
export function envelope(message: Uint8Array, flags = 0): Buffer {
  const framed = Buffer.allocUnsafe(envelopeHeaderBytes + message.length);
  writeEnvelopeHeader(framed, flags, message.length);
  framed.set(message, envelopeHeaderBytes);
  return framed;
}

/** The envelope that ends a stream: always JSON, whatever the codec. */
export function endOfStream(error: EnvdError | undefined): Buffer {
  const body =
    error === undefined ? "{}" : JSON.stringify({ error: { code: error.code, message: error.message } });
  return envelope(Buffer.from(body), endOfStreamFlag);
}

export interface Envelope {
  readonly compressed: boolean;
  readonly message: Buffer;
}

/** Cuts a request stream into envelopes. `pull` gives the body's chunks, then undefined. */
export class EnvelopeReader {
  readonly #pull: () => Promise<Buffer | undefined>;
  #held: Buffer = Buffer.alloc(0);

  constructor(pull: () => Promise<Buffer | undefined>) {
    this.#pull = pull;
  }

  /** The next envelope; undefined at the end. Rejects with `invalid_argument` or `resource_exhausted`. */
  async next(): Promise<Envelope | undefined> {
    const header = await this.#take(envelopeHeaderBytes);
    if (header === undefined) return undefined;
    const flags = header.readUInt8(0);
    const length = header.readUInt32BE(1);
    if ((flags & ~compressedFlag) !== 0) throw new EnvdError("invalid_argument", "unknown envelope flags");
    if (length > messageLimitBytes) throw tooLong();
    const message = await this.#take(length);
    if (message === undefined) throw new EnvdError("invalid_argument", "the request ends inside a message");
    return { compressed: (flags & compressedFlag) !== 0, message };
  }

  /** Exactly `length` bytes; undefined when the body ends before the first of them. */
  async #take(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [this.#held];
    let have = this.#held.length;
    while (have < length) {
      const chunk = await this.#pull();
      if (chunk === undefined) {
        if (have === 0) return undefined;
        throw new EnvdError("invalid_argument", "the request ends inside a message");
      }
      parts.push(chunk);
      have += chunk.length;
    }
    const whole = parts.length === 1 ? this.#held : Buffer.concat(parts, have);
    this.#held = whole.subarray(length);
    return whole.subarray(0, length);
  }
}

/** Undoes a request's compression: `identity` or `gzip`, within the message limit. */
export async function decompress(message: Buffer, encoding: string | undefined): Promise<Buffer> {
  if (encoding === undefined || encoding === "identity" || encoding === "") return message;
  if (encoding !== "gzip") throw new EnvdError("unimplemented", `unknown compression "${encoding}"`);
  try {
    return await gunzipAsync(message, { maxOutputLength: messageLimitBytes });
  } catch (cause) {
    if (cause instanceof RangeError) throw tooLong();
    throw new EnvdError("invalid_argument", "the message is not valid gzip", { cause });
  }
}

function tooLong(): EnvdError {
  return new EnvdError("resource_exhausted", `message is longer than ${messageLimitBytes} bytes`, {
    status: 413,
  });
}
