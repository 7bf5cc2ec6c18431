// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import { decodeJson, encodeJson } from "./json.ts";

const newline = 0x0a;

/** One message of a stream of messages. */
export function encodeLine(message: unknown): Buffer {
  return Buffer.from(`${encodeJson(message)}\n`);
}

/** Takes messages out of a stream of bytes, however they were cut. Holds at most one unfinished line of the limit's length. */
export class LineReader {
  readonly #limitBytes: number;
  #begun: Buffer[] = [];
  #begunBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The messages that are complete now. Throws `link/protocol`. */
  push(chunk: Buffer): unknown[] {
    const messages: unknown[] = [];
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      messages.push(this.#finish(chunk.subarray(from, at)));
      from = at + 1;
    }
    if (from < chunk.length) this.#hold(chunk.subarray(from));
    return messages;
  }

  #hold(piece: Buffer): void {
    this.#begunBytes += piece.length;
    if (this.#begunBytes > this.#limitBytes) throw problem("a line is too long");
    this.#begun.push(piece);
  }

  #finish(last: Buffer): unknown {
    this.#hold(last);
    const line = Buffer.concat(this.#begun).toString("utf8");
    this.#begun = [];
    this.#begunBytes = 0;
    try {
      return decodeJson(line);
    } catch (cause) {
      throw problem("a line is not JSON", cause);
    }
  }
}

function problem(text: string, cause?: unknown): SpaceError {
  return new SpaceError("link/protocol", { problem: text }, { cause });
}
