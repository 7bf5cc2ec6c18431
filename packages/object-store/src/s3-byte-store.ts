// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import {
  type ByteStore,
  requireKeyPrefix,
  requireObjectKey,
  type Secret,
  SpaceError,
  type StoredBytes,
} from "@space/model";
import { AwsV4Signer } from "aws4fetch";
import { attempt } from "./attempt.ts";
import { type ListingPage, member, readListing } from "./s3-listing.ts";

/** One try of one request, its answer's body included. */
const requestLimitMs = 60_000;
/** Every request here may be repeated; S3 asks for that when it is busy. */
const defaultTries = 4;
const defaultBackoffMs = 100;
const listingLimitBytes = 4 * 1024 * 1024;
const errorLimitBytes = 64 * 1024;
const pageLength = 1000;
const emptyDigest = hash("sha256", "", "hex");

export interface S3Options {
  /** `https://…` or, inside one's own network, `http://…`, without a path. The bucket follows it as a path. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret<string>;
  readonly tries?: number;
  /** Before the second try; doubled before each further one. */
  readonly backoffMs?: number;
}

interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

interface Question {
  readonly method: "GET" | "PUT" | "DELETE" | "HEAD";
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Longest permitted body of a success; "unread": it is not looked at. */
  readonly limitBytes: number | "unread";
}

/**
 * Objects in a bucket of anything that speaks the S3 API and is strongly consistent. Requests are signed (Signature 4),
 * with the digest of what is sent, so that the store refuses what changed on its way.
 */
export class S3ByteStore implements ByteStore {
  readonly #options: S3Options;
  readonly #root: string;
  readonly #signingKeys = new Map<string, ArrayBuffer>();

  private constructor(options: S3Options) {
    this.#options = options;
    this.#root = `${new URL(options.endpoint).origin}/${options.bucket}`;
  }

  /** Asks for the bucket once. Throws `store/failed` where it is not there or the credentials are not its. */
  static async open(options: S3Options): Promise<S3ByteStore> {
    const store = new S3ByteStore(options);
    await attempt("open", async () => {
      const { status } = await store.#ask({ method: "HEAD", limitBytes: "unread" });
      if (status !== 200) throw new Error(`the bucket: ${status}`);
    });
    return store;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    requireObjectKey(key);
    await attempt("put", async () => {
      const answer = await this.#ask({ method: "PUT", key, body: bytes, limitBytes: errorLimitBytes });
      if (answer.status !== 200) throw unexpected(answer);
    });
  }

  async get(key: string, limitBytes: number): Promise<Uint8Array | undefined> {
    requireObjectKey(key);
    return attempt("get", async () => {
      const answer = await this.#ask({ method: "GET", key, limitBytes });
      if (answer.status === 200) return answer.body;
      return absentOrThrow(answer);
    });
  }

  /** Asks for the first byte: unlike that to HEAD, the answer says whether it is the object that is absent, or the bucket. */
  async has(key: string): Promise<boolean> {
    requireObjectKey(key);
    return attempt("stat", async () => {
      const headers = { range: "bytes=0-0" };
      const answer = await this.#ask({ method: "GET", key, headers, limitBytes: "unread" });
      // 416: it is there, and empty
      if (answer.status === 200 || answer.status === 206 || answer.status === 416) return true;
      return absentOrThrow(answer) !== undefined;
    });
  }

  async move(from: string, to: string): Promise<boolean> {
    requireObjectKey(from);
    requireObjectKey(to);
    return attempt("move", async () => {
      const headers = { "x-amz-copy-source": `/${this.#options.bucket}/${from}` };
      const copied = await this.#ask({ method: "PUT", key: to, headers, limitBytes: errorLimitBytes });
      if (copied.status !== 200) return absentOrThrow(copied) !== undefined;
      // A copy that fails on its way is a 200 with an error in it.
      if (!copied.body.includes("<CopyObjectResult")) throw unexpected(copied);
      await this.remove(from);
      return true;
    });
  }

  async remove(key: string): Promise<void> {
    requireObjectKey(key);
    await attempt("remove", async () => {
      const answer = await this.#ask({ method: "DELETE", key, limitBytes: errorLimitBytes });
      if (answer.status !== 204 && answer.status !== 200) absentOrThrow(answer);
    });
  }

  async *list(prefix: string): AsyncIterable<StoredBytes> {
    requireKeyPrefix(prefix);
    let next: string | undefined;
    do {
      const page: ListingPage = await attempt("list", () => this.#page(prefix, next));
      for (const object of page.objects) if (object.key.startsWith(prefix)) yield object;
      if (page.next !== undefined && page.next === next)
        throw new SpaceError("store/failed", { step: "list" });
      next = page.next;
    } while (next !== undefined);
  }

  async #page(prefix: string, next: string | undefined): Promise<ListingPage> {
    const query = {
      "list-type": "2",
      "max-keys": String(pageLength),
      prefix,
      ...(next === undefined ? {} : { "continuation-token": next }),
    };
    const answer = await this.#ask({ method: "GET", query, limitBytes: listingLimitBytes });
    if (answer.status !== 200) throw unexpected(answer);
    return readListing(answer.body.toString("utf8"));
  }

  async #ask(question: Question): Promise<Answer> {
    const { tries = defaultTries, backoffMs = defaultBackoffMs } = this.#options;
    for (let tried = 1; ; tried += 1) {
      try {
        const answer = await this.#askOnce(question);
        const isBusy = answer.status >= 500 || answer.status === 429;
        if (!isBusy || tried >= tries) return answer;
      } catch (error) {
        if (error instanceof SpaceError) throw error;
        // `fetch` says a broken connection with a TypeError, which is no bug here.
        if (tried >= tries) throw new Error("the store was not reached", { cause: error });
      }
      await pause(backoffMs * 2 ** (tried - 1));
    }
  }

  async #askOnce(question: Question): Promise<Answer> {
    const { method, body, limitBytes } = question;
    const signed = await this.#sign(question);
    const response = await fetch(signed.url, {
      method,
      headers: signed.headers,
      redirect: "error",
      signal: AbortSignal.timeout(requestLimitMs),
      ...(body === undefined ? {} : { body: Uint8Array.from(body) }),
    });
    if (response.ok && limitBytes === "unread") {
      await response.body?.cancel();
      return { status: response.status, body: Buffer.alloc(0) };
    }
    const limit = response.ok && limitBytes !== "unread" ? limitBytes : errorLimitBytes;
    return { status: response.status, body: await bodyOf(response, limit) };
  }

  async #sign({ method, key, query, headers, body }: Question): Promise<{ url: URL; headers: Headers }> {
    const { accessKeyId, secretAccessKey, region } = this.#options;
    const url = new URL(key === undefined ? this.#root : `${this.#root}/${key}`);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
    const digest = body === undefined ? emptyDigest : hash("sha256", body, "hex");
    return new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, "x-amz-content-sha256": digest },
      accessKeyId,
      secretAccessKey: secretAccessKey.reveal(),
      service: "s3",
      region,
      cache: this.#signingKeys,
    }).sign();
  }
}

/** The whole body, or an error: never a part of it. */
async function bodyOf(response: Response, limitBytes: number): Promise<Buffer> {
  const tooLarge = new SpaceError("input/too-large", { what: "object", limitBytes });
  if (Number(response.headers.get("content-length") ?? 0) > limitBytes) {
    await response.body?.cancel();
    throw tooLarge;
  }
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += piece.length;
    if (length > limitBytes) throw tooLarge; // which also ends the transfer
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Only the store's own word that there is no such key counts as absent. */
function absentOrThrow(answer: Answer): undefined {
  const isAbsent = answer.status === 404 && member(answer.body.toString("utf8"), "Code") === "NoSuchKey";
  if (!isAbsent) throw unexpected(answer);
}

function unexpected({ status, body }: Answer): Error {
  return new Error(`the store answered ${status}: ${member(body.toString("utf8"), "Code") ?? "no code"}`);
}
