// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type FetchedFile,
  type GuestConnection,
  type GuestEntry,
  GuestError,
  type ReadHandlers,
} from "@space/spaced-guest";
import {
  type AcceptedEncodings,
  acceptedEncodings,
  contentDisposition,
  contentType,
  parseRange,
  resolveRange,
} from "./content-negotiation.ts";
import { EnvdError, onPath } from "./envd-error.ts";
import { GzipAnswer } from "./gzip-answer.ts";
import type { OperationContext } from "./operation-context.ts";

/** Below this size compressing costs more than it saves. */
export const gzipFromBytes: number = 128 * 1024;
/** How much of a file's beginning is looked at to tell text from bytes. */
const sniffBytes = 1024;

/** `GET` and `HEAD /files`: a file, whole or one range of it, in one round trip to the guest where possible. */
export async function downloadFile(context: OperationContext): Promise<void> {
  const query = context.query();
  const user = await context.user(query.get("username"));
  const path = context.resolve(query.get("path") ?? "", user);
  const encodings = acceptedEncodings(context.header("accept-encoding"));
  if (!encodings.gzip && !encodings.identity) {
    throw new EnvdError("invalid_argument", "no acceptable encoding", { status: 406 });
  }
  if (encodings.identity && !needsStat(context)) {
    const file = await onPath(path, fetchSmall(context, path));
    if (file !== undefined) return sendSmall(context, path, file);
  }
  const { pool } = context.activation;
  await onPath(
    path,
    pool.use(async (guest) => {
      const part = needsStat(context) ? await partOf(context, await guest.stat(path), path) : whole;
      if (part !== undefined) await send(context, guest, path, part, encodings);
    }),
  );
}

/** The file, if it is a small one. */
function fetchSmall({ activation }: OperationContext, path: string): Promise<FetchedFile | undefined> {
  return new Promise((resolve, reject) => {
    activation.files.fetch({
      path,
      done: resolve,
      failed(error) {
        if (error instanceof GuestError && error.code === "EFBIG") resolve(undefined);
        else reject(error);
      },
    });
  });
}

/** While the way to the caller is full, the answers of other small files wait too, in the guest's hands. */
function sendSmall({ activation, exchange }: OperationContext, path: string, file: FetchedFile): void {
  const { content } = file;
  const headers = [...fileHeaders(file, path), "content-length", content.length.toString()];
  if (content.length === 0) return exchange.answer(200, headers);
  exchange.begin({ status: 200, headers });
  if (exchange.write(content)) return exchange.end();
  const { files } = activation;
  files.pause();
  exchange.listenForDrain(() => exchange.end());
  exchange.onOver(() => files.resume());
}

/** What of the file is to be sent; `total` is its size where a range was asked for. */
interface Part {
  readonly offset: number;
  readonly length: number | undefined;
  readonly total: number | undefined;
}

const whole: Part = { offset: 0, length: undefined, total: undefined };

function needsStat(context: OperationContext): boolean {
  if (context.exchange.head.method === "HEAD") return true;
  return context.header("range") !== undefined || context.header("if-modified-since") !== undefined;
}

/** The part that the request's conditions name; undefined when they are answered without the file. */
async function partOf(context: OperationContext, entry: GuestEntry, path: string): Promise<Part | undefined> {
  const { exchange } = context;
  if (entry.type === "directory") throw isDirectory(path);
  const headers = fileHeaders(entry, path);
  const since = Date.parse(context.header("if-modified-since") ?? "");
  if (Number.isFinite(since) && Math.floor(entry.modifiedAtMs / 1000) * 1000 <= since) {
    exchange.answer(304, headers);
    return undefined;
  }
  const range = parseRange(context.header("range"));
  if (range === undefined || !rangeStillMeant(context, entry)) {
    if (exchange.head.method !== "HEAD") return whole;
    exchange.answer(200, [...headers, "content-length", entry.sizeBytes.toString()]);
    return undefined;
  }
  const found = resolveRange(range, entry.sizeBytes);
  if (found === undefined) {
    exchange.answer(416, ["content-range", `bytes */${entry.sizeBytes}`, "content-length", "0"]);
    return undefined;
  }
  const part = { offset: found.first, length: found.last - found.first + 1, total: entry.sizeBytes };
  if (exchange.head.method !== "HEAD") return part;
  exchange.answer(206, [...headers, ...rangeHeaders(part)]);
  return undefined;
}

/** `If-Range`: the range is meant only while the file is the one that the caller knows. */
function rangeStillMeant(context: OperationContext, entry: GuestEntry): boolean {
  const condition = context.header("if-range");
  return condition === undefined || condition === lastModified(entry);
}

function send(
  context: OperationContext,
  guest: GuestConnection,
  path: string,
  part: Part,
  encodings: AcceptedEncodings,
): Promise<void> {
  const transfer = new FileTransfer(context, guest, path, part, encodings);
  const { offset, length } = part;
  const reading = guest.readStream(path, length === undefined ? { offset } : { offset, length }, transfer);
  return reading.then(() => transfer.end()).finally(() => guest.resume()); // whoever has it next reads at his own pace
}

/** One file on its way from the guest to the caller, at the caller's pace. */
class FileTransfer implements ReadHandlers {
  readonly #context: OperationContext;
  readonly #guest: GuestConnection;
  readonly #path: string;
  readonly #part: Part;
  readonly #encodings: AcceptedEncodings;
  #entry: GuestEntry | undefined;
  #gzip: GzipAnswer | undefined;
  /** Bytes that the head has promised and that have not come yet; undefined: no length was promised. */
  #promised: number | undefined;
  #begun = false;

  constructor(
    context: OperationContext,
    guest: GuestConnection,
    path: string,
    part: Part,
    encodings: AcceptedEncodings,
  ) {
    this.#context = context;
    this.#guest = guest;
    this.#path = path;
    this.#part = part;
    this.#encodings = encodings;
    const { exchange } = context;
    exchange.listenForDrain(() => guest.resume());
    exchange.onOver(() => {
      if (exchange.gone) guest.destroy(); // the rest of the file is not wanted
    });
  }

  onEntry(entry: GuestEntry): void {
    this.#entry = entry;
  }

  onData(chunk: Buffer): void {
    if (!this.#begun) this.#begin(chunk);
    let wanted = chunk;
    if (this.#promised !== undefined) {
      if (chunk.length > this.#promised) wanted = chunk.subarray(0, this.#promised); // it has grown meanwhile
      this.#promised -= wanted.length;
    }
    const room = this.#gzip === undefined ? this.#context.exchange.write(wanted) : this.#gzip.write(wanted);
    if (room) return;
    this.#guest.pause();
    this.#context.activation.pool.disown(this.#guest);
  }

  end(): Promise<void> {
    if (!this.#begun) this.#begin(undefined);
    const { exchange } = this.#context;
    if (this.#gzip !== undefined) return this.#gzip.end();
    if (this.#promised !== undefined && this.#promised > 0) exchange.reset("file shrank");
    else exchange.end();
    return Promise.resolve();
  }

  /** Sends the head, once it is known whether anything follows. `first` is undefined for an empty file. */
  #begin(first: Buffer | undefined): void {
    this.#begun = true;
    const entry = this.#entry;
    if (entry === undefined) throw new EnvdError("internal", "the guest sent no entry");
    const { exchange } = this.#context;
    const headers = fileHeaders(entry, this.#path);
    if (this.#part.total !== undefined) {
      this.#promised = this.#part.length;
      exchange.begin({ status: 206, headers: [...headers, ...rangeHeaders(this.#part)] });
      return;
    }
    if (this.#compresses(entry, first)) {
      exchange.begin({ status: 200, headers: [...headers, "content-encoding", "gzip"] });
      this.#gzip = new GzipAnswer(exchange, () => this.#guest.resume());
      return;
    }
    // A size of 0 says nothing of a file under /proc, or of a device: its end tells.
    if (entry.sizeBytes > 0 || first === undefined) {
      this.#promised = first === undefined ? 0 : entry.sizeBytes;
      headers.push("content-length", this.#promised.toString());
    }
    exchange.begin({ status: 200, headers });
  }

  #compresses(entry: GuestEntry, first: Buffer | undefined): boolean {
    if (!this.#encodings.gzip) return false;
    if (!this.#encodings.identity) return true;
    return (
      entry.sizeBytes >= gzipFromBytes && first !== undefined && !first.subarray(0, sniffBytes).includes(0)
    );
  }
}

type Modified = Pick<GuestEntry, "modifiedAtMs">;

function fileHeaders(entry: Modified, path: string): string[] {
  return [
    "content-type",
    contentType(path),
    "content-disposition",
    contentDisposition(path),
    "last-modified",
    lastModified(entry),
    "accept-ranges",
    "bytes",
    "vary",
    "Accept-Encoding",
  ];
}

function rangeHeaders({ offset, length = 0, total = 0 }: Part): string[] {
  return [
    "content-range",
    `bytes ${offset}-${offset + length - 1}/${total}`,
    "content-length",
    length.toString(),
  ];
}

function lastModified({ modifiedAtMs }: Modified): string {
  const date = new Date(modifiedAtMs);
  return Number.isNaN(date.getTime()) ? new Date(0).toUTCString() : date.toUTCString();
}

function isDirectory(path: string): EnvdError {
  return new EnvdError("invalid_argument", `path '${path}' is a directory`);
}
