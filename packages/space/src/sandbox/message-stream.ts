// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

const headerBytes = 5;
const endOfStream = 2;
/** The agent's own limit, and room for base64. */
const messageLimitBytes = 4 * 1024 * 1024;

/** One message of a Connect stream, to be sent. */
export function enveloped(message: unknown): Buffer<ArrayBuffer> {
  const body = Buffer.from(JSON.stringify(message));
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE(body.length, 1);
  return Buffer.concat([header, body]);
}

export type StreamItem =
  | { readonly kind: "message"; readonly message: unknown }
  /** The last one. `error` is the agent's, if it did not end well. */
  | { readonly kind: "end"; readonly error: unknown };

/**
 * The messages of a Connect stream as they come. Throws `link/closed` when it breaks off, `link/protocol` for what is none,
 * and `input/too-large`.
 */
export async function* readMessages(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<StreamItem> {
  let held: Buffer = Buffer.alloc(0);
  for await (const piece of bytes) {
    held = held.length === 0 ? Buffer.from(piece) : Buffer.concat([held, piece]);
    while (held.length >= headerBytes) {
      const size = held.readUInt32BE(1);
      if (size > messageLimitBytes)
        throw new SpaceError("input/too-large", { what: "message", limitBytes: messageLimitBytes });
      if (held.length < headerBytes + size) break;
      const flags = held.readUInt8(0);
      const value = parse(held.toString("utf8", headerBytes, headerBytes + size));
      held = held.subarray(headerBytes + size);
      if (flags === endOfStream) {
        yield { kind: "end", error: (value as { readonly error?: unknown }).error }; // cast: of an object, checked by parse
        return;
      }
      yield { kind: "message", message: value };
    }
  }
  throw new SpaceError("link/closed", {});
}

function parse(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // refused below
  }
  throw new SpaceError("link/protocol", { problem: "no message" });
}
