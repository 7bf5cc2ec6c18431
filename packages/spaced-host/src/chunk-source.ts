// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { EnvdError } from "./envd-error.ts";
import { CallerGone } from "./request-body.ts";

/** Gives the next chunk, or undefined at the end. One caller at a time. */
export type ChunkSource = () => Promise<Buffer | undefined>;

/** The chunks of a readable stream; its errors are the source's. */
export function streamChunks(stream: Readable): ChunkSource {
  const iterator: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]();
  return async () => {
    const next = await iterator.next();
    return next.done === true ? undefined : next.value;
  };
}

/** Undoes a body's compression as it comes: `gzip` or none. */
export function decodedChunks(source: ChunkSource, encoding: string | undefined): ChunkSource {
  const name = encoding?.trim().toLowerCase() ?? "";
  if (name === "" || name === "identity") return source;
  if (name !== "gzip" && name !== "x-gzip") {
    throw new EnvdError("invalid_argument", `unsupported content encoding '${name}'`);
  }
  const gunzip = createGunzip();
  pipeline(Readable.from(generate(source)), gunzip, () => undefined); // whoever pulls meets the error
  const chunks = streamChunks(gunzip);
  return async () => {
    try {
      return await chunks();
    } catch (cause) {
      if (cause instanceof CallerGone) throw cause;
      throw new EnvdError("invalid_argument", "the body is not valid gzip", { cause });
    }
  };
}

async function* generate(source: ChunkSource): AsyncGenerator<Buffer> {
  for (let chunk = await source(); chunk !== undefined; chunk = await source()) yield chunk;
}
