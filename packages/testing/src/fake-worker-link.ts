// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Duplex, duplexPair } from "node:stream";
import { routeDigest } from "@space/capability";
import type { ExecutionIdentity } from "@space/model";
import {
  admissionHeader,
  admittedHeader,
  FrameLink,
  failureHeader,
  type LinkStream,
  type OperationHead,
  parseOperationHead,
  rejectedRouteHeader,
  verdictHeader,
} from "@space/wire";

/** One operation as a worker got it. The test decides what becomes of it. */
export class FakeOperation {
  readonly head: OperationHead;
  readonly stream: LinkStream;
  /** How much of the body has come, and whether it came to its end. */
  bodyBytes = 0;
  bodyEnded: boolean;
  /** The word of the reset, when the gateway gave the operation up. */
  resetBy: string | undefined;
  /** False: bytes stay unconsumed, as a guest that does not read. */
  reading = true;
  readonly #kept: Buffer[] = [];
  #unread = 0;
  readonly #wake: (() => void)[] = [];
  #draining: (() => void) | undefined;

  constructor(stream: LinkStream, head: OperationHead, ended: boolean) {
    this.stream = stream;
    this.head = head;
    this.bodyEnded = ended;
  }

  /** The first MiB of the body. */
  get body(): Buffer {
    return Buffer.concat(this.#kept);
  }

  header(name: string): string | undefined {
    const at = this.head.headers.findIndex((text, index) => index % 2 === 0 && text === name);
    return at < 0 ? undefined : this.head.headers[at + 1];
  }

  /** Lets it through, with the guest's answer. Without a body the answer stays open. */
  admit(status: number, headers: readonly string[] = [], body?: string | Buffer): void {
    this.answer(status, [admittedHeader, this.head.admission, ...headers], body);
  }

  fail(code: string): void {
    this.answer(502, [admittedHeader, this.head.admission, failureHeader, code], "");
  }

  refreshRoute(rejected: ExecutionIdentity): void {
    const { admission } = this.head;
    const verdict = [verdictHeader, "refresh-route", admissionHeader, admission];
    this.answer(421, [...verdict, rejectedRouteHeader, routeDigest(rejected)], "");
  }

  deny(): void {
    this.answer(403, [verdictHeader, "deny", admissionHeader, this.head.admission], "");
  }

  /** Any head at all, also one that no worker may send. */
  answer(status: number, headers: readonly string[], body?: string | Buffer): void {
    this.stream.sendHead(JSON.stringify({ status, headers }), body === "");
    if (body === undefined || body === "") return;
    this.stream.send(Buffer.from(body));
    this.stream.end();
  }

  proceed(): void {
    this.stream.sendProceed(this.head.admission);
  }

  /** Resolves when the condition holds; looked at whenever something happens to this operation. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  /** Sends as fast as the gateway takes it; resolves with the bytes sent when it wants no more for now. */
  sendUntilFull(chunk: Buffer, limitBytes: number): number {
    let sent = 0;
    while (sent < limitBytes) {
      sent += chunk.length;
      if (!this.stream.send(chunk)) break;
    }
    return sent;
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#draining = resolve;
    });
  }

  /** Reads on after `reading` was false. */
  readOn(): void {
    this.reading = true;
    this.stream.consumed(this.#unread);
    this.#unread = 0;
  }

  took(chunk: Buffer): void {
    if (this.bodyBytes < 1024 * 1024) this.#kept.push(Buffer.from(chunk));
    this.bodyBytes += chunk.length;
    if (this.reading) this.stream.consumed(chunk.length);
    else this.#unread += chunk.length;
    this.happened();
  }

  onDrain(): void {
    const resolve = this.#draining;
    this.#draining = undefined;
    resolve?.();
  }

  happened(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }
}

/** A worker's node-api that speaks the wire over in-process sockets. `serve` is the worker. */
export class FakeWorker {
  readonly operations: FakeOperation[] = [];
  readonly links: FrameLink[] = [];
  serve: (operation: FakeOperation) => void;
  readonly #wake: (() => void)[] = [];

  constructor(serve: (operation: FakeOperation) => void = (operation) => operation.admit(200, [], "ok")) {
    this.serve = serve;
  }

  /** The gateway's end of a new connection. */
  dial(): Promise<Duplex> {
    const [near, far] = duplexPair();
    const link = new FrameLink(far, {
      dialled: false,
      onOpen: (stream, head, ended) => {
        const operation = new FakeOperation(stream, readHead(head), ended);
        this.operations.push(operation);
        this.serve(operation);
        for (const resolve of this.#wake.splice(0)) resolve();
        return {
          onData: (chunk) => operation.took(chunk),
          onEnd: () => {
            operation.bodyEnded = true;
            operation.happened();
          },
          onReset: (reason) => {
            operation.resetBy = reason;
            operation.happened();
          },
          onDrain: () => operation.onDrain(),
        };
      },
    });
    this.links.push(link);
    return Promise.resolve(near);
  }

  /** The operation with this number, as soon as it is there. */
  async operation(number: number): Promise<FakeOperation> {
    for (;;) {
      const operation = this.operations[number];
      if (operation !== undefined) return operation;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  close(): void {
    for (const link of this.links) link.destroy(undefined);
  }
}

function readHead(head: Buffer): OperationHead {
  const value: unknown = JSON.parse(head.toString("utf8"));
  return parseOperationHead(value);
}
