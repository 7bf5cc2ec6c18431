// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import type { AnswerHead } from "@space/wire";
import type { ClientResponse } from "./client-response.ts";
import type { CallerSide } from "./operation.ts";
import { type Refusal, type RefusedRequest, refusalAnswer } from "./refusal.ts";
import type { RequestBody } from "./request-body.ts";

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
  #sentBytes = false;

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
    process.nextTick(() => this.#flush());
    return true;
  }

  data(chunk: Buffer): boolean {
    if (this.#skips) return true;
    this.#sentBytes = true;
    if (this.#dueBytes !== undefined) {
      this.#dueBytes -= chunk.length;
      // More than announced would be read as the next answer on this connection, perhaps another sandbox's.
      if (this.#dueBytes < 0) {
        this.broken();
        return false;
      }
    }
    return this.#ports.response.write(chunk);
  }

  end(): void {
    this.#sentBytes = true;
    if (this.#dueBytes !== undefined && this.#dueBytes > 0) return this.broken();
    this.#ports.response.end();
    this.#leaveUpload();
  }

  broken(): void {
    this.#sentBytes = true;
    this.#ports.response.abort();
  }

  refuse(refusal: Refusal): void {
    const { status, headers, body } = refusalAnswer(refusal, this.#request);
    this.#ports.response.head(status, headers);
    this.#ports.response.end(body);
    this.#leaveUpload();
  }

  /** The head leaves with the first bytes when they are here already, and alone when they are not. */
  #flush(): void {
    if (!this.#sentBytes) this.#ports.response.flush();
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
