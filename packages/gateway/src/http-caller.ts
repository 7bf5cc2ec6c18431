// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import type { AnswerHead } from "@space/wire";
import type { CallerSide } from "./caller-side.ts";
import type { ClientResponse } from "./client-response.ts";
import { type Refusal, type RefusedRequest, refusalAnswer } from "./refusal.ts";
import type { RequestBody } from "./request-body.ts";

/** Longer pieces are passed on at once. */
const keptLimitBytes = 16 * 1024;

function flush(caller: HttpCaller): void {
  caller.flush();
}

export interface HttpCallerPorts {
  readonly response: ClientResponse;
  readonly body: RequestBody;
  readonly clock: Clock;
  readonly lingerMs: number;
}

/** The caller of an ordinary HTTP request. */
export class HttpCaller implements CallerSide {
  readonly #request: RefusedRequest;
  readonly #bodyless: boolean;
  readonly #ports: HttpCallerPorts;
  /** Bytes of the answer still due; undefined when its length was not announced. */
  #dueBytes: number | undefined;
  #skips = false;
  /** Whether the head is on its way, or the answer is over. */
  #headLeft = false;
  /** A short first piece, kept until the end of this turn: most answers are then one write. */
  #kept: Buffer | undefined;

  constructor(request: RefusedRequest, method: string, ports: HttpCallerPorts) {
    this.#request = request;
    this.#bodyless = method === "HEAD";
    this.#ports = ports;
  }

  answer({ status, headers }: AnswerHead): boolean {
    if (status === 101) return false;
    this.#skips = this.#bodyless || status === 204 || status === 304;
    const length = answerLength(headers);
    if (length === "bad") return false;
    this.#dueBytes = this.#skips ? undefined : length;
    try {
      this.#ports.response.head(status, status === 204 ? without(headers, "content-length") : [...headers]);
    } catch {
      return false; // the guest's header cannot be sent: node names which, and nobody here may read it
    }
    process.nextTick(flush, this);
    return true;
  }

  data(chunk: Buffer): boolean {
    if (this.#skips) return true;
    if (this.#dueBytes !== undefined) {
      this.#dueBytes -= chunk.length;
      // More than announced would be read as the next answer on this connection, perhaps another sandbox's.
      if (this.#dueBytes < 0) {
        this.broken(false);
        return false;
      }
    }
    if (!this.#headLeft && this.#kept === undefined && chunk.length <= keptLimitBytes) {
      this.#kept = chunk;
      return true;
    }
    this.flush();
    return this.#ports.response.write(chunk);
  }

  onceDrained(callback: () => void): void {
    this.#ports.response.onceDrained(callback);
  }

  end(): void {
    if (this.#dueBytes !== undefined && this.#dueBytes > 0) return this.broken(false);
    this.#headLeft = true;
    this.#ports.response.end(this.#kept);
    this.#kept = undefined;
    this.#leaveUpload();
  }

  broken(_restarts: boolean): void {
    this.#headLeft = true;
    this.#kept = undefined;
    this.#ports.response.abort();
  }

  /** Sends what is kept: the head, and a short first piece. */
  flush(): void {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept !== undefined) this.#ports.response.write(kept);
    else if (!this.#headLeft) this.#ports.response.flush();
    this.#headLeft = true;
  }

  refuse(refusal: Refusal): void {
    const { status, headers, body } = refusalAnswer(refusal, this.#request);
    this.#ports.response.head(status, headers);
    this.#ports.response.end(body);
    this.#leaveUpload();
  }

  /** Reads on for a while, so that the caller gets to see the answer; then stops it. */
  #leaveUpload(): void {
    const { body, clock, response, lingerMs } = this.#ports;
    if (body.ended) return;
    body.discard();
    clock.after(lingerMs, () => {
      if (!body.ended) response.stopUpload();
    });
  }
}

/** The length that an answer announces; "bad" when it announces several or none that can be meant. */
export function answerLength(headers: readonly string[]): number | undefined | "bad" {
  let length: number | undefined;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    if (headers[at] !== "content-length") continue;
    const text = headers[at + 1] ?? "";
    if (length !== undefined || !/^[0-9]{1,15}$/.test(text)) return "bad";
    length = Number(text);
  }
  return length;
}

function without(headers: readonly string[], name: string): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2)
    if (headers[at] !== name) kept.push(headers[at] ?? "", headers[at + 1] ?? "");
  return kept;
}
