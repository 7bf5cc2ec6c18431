// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { headerValue } from "@space/wire";

// The little that the gateway knows of Connect's streams: where a message ends, and how to add one of its own.
// Nothing of a message is kept or read, so a guest can make it believe nothing but a wrong place, in its own stream.

export type ConnectCodec = "json" | "proto";

const headerBytes = 5;
const endOfStreamFlag = 2;

/** The codec of an answer that is a Connect stream; undefined for every other answer. */
export function streamCodec(status: number, headers: readonly string[]): ConnectCodec | undefined {
  if (status !== 200 || headerValue(headers, "content-length") !== undefined) return undefined;
  const type = headerValue(headers, "content-type");
  if (type === "application/connect+json") return "json";
  return type === "application/connect+proto" ? "proto" : undefined;
}

/** Follows a stream of `u8 flags, u32 length, message`, in constant memory, however it is cut into pieces. */
export class EnvelopeTracker {
  #headerSeen = 0;
  #flags = 0;
  #length = 0;
  #messageLeft = 0;
  #passedBytes = 0;
  #ended = false;

  /** All bytes that have passed. */
  get passedBytes(): number {
    return this.#passedBytes;
  }

  /** Whether the next byte begins a message: the one place where another may be put in. */
  get between(): boolean {
    return this.#headerSeen === 0 && this.#messageLeft === 0;
  }

  /** Whether the message that ends the stream has passed whole. */
  get ended(): boolean {
    return this.#ended;
  }

  push(chunk: Buffer): void {
    this.#passedBytes += chunk.length;
    let at = 0;
    while (at < chunk.length) {
      if (this.#messageLeft > 0) {
        const step = Math.min(this.#messageLeft, chunk.length - at);
        this.#messageLeft -= step;
        at += step;
      } else {
        this.#headerByte(chunk[at] ?? 0);
        at += 1;
      }
      if (this.between && (this.#flags & endOfStreamFlag) !== 0) this.#ended = true;
    }
  }

  #headerByte(byte: number): void {
    if (this.#headerSeen === 0) {
      this.#flags = byte;
      this.#length = 0;
    } else this.#length = this.#length * 256 + byte;
    this.#headerSeen += 1;
    if (this.#headerSeen < headerBytes) return;
    this.#headerSeen = 0;
    this.#messageLeft = this.#length;
  }
}

/** What an idle stream sends to show that it lives: a process's event, or a watch's. */
export function keepaliveMessage(of: "process" | "watch", codec: ConnectCodec): Buffer {
  if (codec === "json")
    return envelope(0, Buffer.from(of === "process" ? '{"event":{"keepalive":{}}}' : '{"keepalive":{}}'));
  // field 1 (event) { field 4 (keepalive) {} }, and field 3 (keepalive) {}
  return envelope(0, Buffer.from(of === "process" ? [0x0a, 0x02, 0x22, 0x00] : [0x1a, 0x00]));
}

/** The message that ends a stream with an error: JSON, whatever the codec. */
export function errorEnding(code: "aborted" | "unavailable", message: string): Buffer {
  return envelope(endOfStreamFlag, Buffer.from(JSON.stringify({ error: { code, message } })));
}

function envelope(flags: number, message: Buffer): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}
