// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readPosition, type StreamPosition } from "@space/wire";
import type { FakeOperation } from "./fake-worker-link.ts";

/** One message in its envelope. */
export function enveloped(message: string, flags = 0): Buffer {
  const bytes = Buffer.from(message);
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([header, bytes]);
}

/** The messages of a Connect stream that are whole, each with its flags before it. */
export function messagesIn(stream: Buffer): { readonly flags: number; readonly text: string }[] {
  const found = [];
  let at = 0;
  while (at + 5 <= stream.length) {
    const end = at + 5 + stream.readUInt32BE(at + 1);
    if (end > stream.length) break;
    found.push({ flags: stream.readUInt8(at), text: stream.toString("utf8", at + 5, end) });
    at = end;
  }
  return found;
}

export function positionOf(operation: FakeOperation): StreamPosition {
  const position = readPosition(operation.head.headers);
  if (position === undefined) throw new TypeError("the operation has no name");
  return position;
}

/**
 * The bridge's side of the contract for answers that go on: everything ever sent under a name is kept, and a
 * continuation gets what comes after its offset.
 */
export class FakeNamedStreams {
  readonly #answers = new Map<string, { bytes: Buffer; current: FakeOperation }>();

  /** Serves a first presentation or a continuation; `stream/lost` for a continuation of what is not known. */
  serve(operation: FakeOperation, codec = "json"): void {
    const { key, answerOffset } = positionOf(operation);
    const known = this.#answers.get(key);
    if (known === undefined && answerOffset !== undefined) return operation.fail("stream/lost");
    const answer = known ?? { bytes: Buffer.alloc(0), current: operation };
    this.#answers.set(key, answer);
    answer.current = operation;
    operation.admit(200, ["content-type", `application/connect+${codec}`]);
    const rest = answer.bytes.subarray(answerOffset ?? 0);
    if (rest.length > 0) operation.stream.send(Buffer.from(rest));
  }

  /** The guest sends: kept, and passed on to whoever serves the stream now. */
  send(key: string, bytes: Buffer): void {
    const answer = this.#answers.get(key);
    if (answer === undefined) throw new TypeError("no such stream");
    answer.bytes = Buffer.concat([answer.bytes, bytes]);
    answer.current.stream.send(Buffer.from(bytes));
  }

  /** The stream as the guest sent it. */
  bytesOf(key: string): Buffer {
    return this.#answers.get(key)?.bytes ?? Buffer.alloc(0);
  }

  /** Nothing is known any more: a bridge that starts anew. */
  forget(): void {
    this.#answers.clear();
  }
}
