// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Readable } from "node:stream";
import { Busboy } from "@fastify/busboy";
import { type ChunkSource, streamChunks } from "./chunk-source.ts";
import { EnvdError } from "./envd-error.ts";

/** Parts of one form, and the size of one part's head. */
const partLimit = 10_000;
const partHeadLimitBytes = 16 * 1024;
const partHeadFields = 32;
/** The one field that carries files. */
const fileField = "file";

export interface FilePart {
  /** As sent, with its folders; undefined when the part has none. */
  readonly filename: string | undefined;
  readonly content: ChunkSource;
}

/**
 * Hands out the parts named `file` of a form, one after the other and each only when the one before has been dealt with;
 * other parts are dropped. Rejects with `invalid_argument` for a broken form, or with what `onPart` or the source rejects.
 */
export async function readParts(
  contentType: string,
  source: ChunkSource,
  onPart: (part: FilePart) => Promise<void>,
): Promise<void> {
  const parser = openParser(contentType);
  const parts = new PartQueue(onPart);
  parser.on("file", (field, stream, filename) => {
    // The types say that a name is always there; a part may have none.
    const name = filename as string | undefined; // cast: see above
    if (field === fileField) parts.add(stream, name);
    else stream.resume();
  });
  parser.on("partsLimit", () => parts.fail(new EnvdError("invalid_argument", "the form has too many parts")));
  const finished = new Promise<void>((resolve) => {
    parser.once("finish", resolve);
    parser.on("error", (cause) => {
      parts.fail(new EnvdError("invalid_argument", "the form is not valid", { cause }));
      resolve();
    });
  });
  try {
    await Promise.race([feed(parser, source, parts), parts.failed]);
    await Promise.race([finished, parts.failed]);
    await parts.settled();
  } catch (error) {
    parts.fail(error);
    throw error;
  } finally {
    parser.destroy();
  }
}

type Parser = InstanceType<typeof Busboy>;

function openParser(contentType: string): Parser {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      preservePath: true,
      isPartAFile: (field) => field === fileField,
      limits: {
        parts: partLimit,
        headerPairs: partHeadFields,
        headerSize: partHeadLimitBytes,
        fieldSize: 1024,
      },
    });
  } catch (cause) {
    throw new EnvdError("invalid_argument", "the form has no boundary", { cause });
  }
}

/** Feeds the form no faster than its files are taken: at most one of them is unfinished before the next chunk. */
async function feed(parser: Parser, source: ChunkSource, parts: PartQueue): Promise<void> {
  for (let chunk = await source(); chunk !== undefined; chunk = await source()) {
    const piece = chunk;
    await Promise.race([new Promise<void>((resolve) => parser.write(piece, () => resolve())), parts.failed]);
    await parts.atMostOne();
  }
  parser.end();
}

/** Files of a form in their order. */
class PartQueue {
  readonly #onPart: (part: FilePart) => Promise<void>;
  /** Rejects with the first failure; never resolves. */
  readonly failed: Promise<never>;
  readonly #open = new Set<Readable>();
  #reject: (error: unknown) => void = () => undefined;
  #tail: Promise<void> = Promise.resolve();
  #beforeLast: Promise<void> = Promise.resolve();

  constructor(onPart: (part: FilePart) => Promise<void>) {
    this.#onPart = onPart;
    this.failed = new Promise((_resolve, reject) => {
      this.#reject = reject;
    });
    this.failed.catch(() => undefined); // met by whoever waits
  }

  /** Ends whatever still reads a part. */
  fail(error: unknown): void {
    this.#reject(error);
    const cause = error instanceof Error ? error : new Error("the form failed", { cause: error });
    for (const stream of this.#open) stream.destroy(cause);
    this.#open.clear();
  }

  add(stream: Readable, filename: string | undefined): void {
    this.#open.add(stream);
    stream.on("close", () => this.#open.delete(stream));
    stream.on("error", (cause) =>
      this.fail(new EnvdError("invalid_argument", "the form ends early", { cause })),
    );
    const content = streamChunks(stream);
    this.#beforeLast = this.#tail;
    this.#tail = this.#tail.then(() => this.#onPart({ filename, content }));
    this.#tail.catch((error: unknown) => this.fail(error));
  }

  /** Resolves when all parts but the last have been dealt with: those before it have arrived whole. */
  atMostOne(): Promise<void> {
    return Promise.race([this.#beforeLast, this.failed]);
  }

  settled(): Promise<void> {
    return Promise.race([this.#tail, this.failed]);
  }
}
