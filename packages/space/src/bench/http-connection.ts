// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { UnsoundRun } from "./unsound.ts";

export interface PlainRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

export interface PlainAnswer {
  readonly status: number;
  readonly body: Buffer;
}

const answerLimitBytes = 1024 * 1024;
const answerLimitMs = 30_000;

/**
 * One persistent HTTP/1.1 connection to a loopback server, for answers that are small: it does as little as a client can,
 * so that what is measured is the server. One request at a time.
 */
export class HttpConnection {
  readonly #socket: Socket;
  readonly #host: string;
  #received: Buffer = Buffer.alloc(0);
  #waiting: { resolve: (answer: PlainAnswer) => void; reject: (error: Error) => void } | undefined;

  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, "connect");
    return new HttpConnection(socket, host);
  }

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new UnsoundRun("the connection was closed")));
  }

  async ask({ method, path, headers, body = Buffer.alloc(0) }: PlainRequest): Promise<PlainAnswer> {
    if (this.#waiting !== undefined) throw new TypeError("one request at a time");
    const lines = Object.entries({ host: this.#host, ...headers, "content-length": String(body.length) });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const { promise, resolve, reject } = Promise.withResolvers<PlainAnswer>();
    this.#waiting = { resolve, reject };
    const late = setTimeout(() => this.#fail(new UnsoundRun(`${method} ${path}: no answer`)), answerLimitMs);
    this.#socket.write(Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n`), body]));
    try {
      return await promise;
    } finally {
      clearTimeout(late);
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#socket.destroy();
    waiting?.reject(error);
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    if (this.#received.length > answerLimitBytes) return this.#fail(new UnsoundRun("the answer is too long"));
    const answer = readAnswer(this.#received);
    const waiting = this.#waiting;
    if (answer === undefined || waiting === undefined) return;
    this.#received = Buffer.alloc(0);
    this.#waiting = undefined;
    waiting.resolve(answer);
  }
}

/** The answer, once it is whole; nothing may come after it. */
export function readAnswer(bytes: Buffer): PlainAnswer | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = bytes.toString("latin1", 0, end);
  const status = Number(head.slice(9, 12));
  const rest = bytes.subarray(end + 4);
  if (/^transfer-encoding: chunked$/im.test(head)) {
    const body = joinChunks(rest);
    return body && { status, body };
  }
  const length = Number(/^content-length: ([0-9]+)$/im.exec(head)?.[1] ?? 0);
  return rest.length < length ? undefined : { status, body: rest.subarray(0, length) };
}

function joinChunks(bytes: Buffer): Buffer | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const length = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const next = lineEnd + 2 + length + 2;
    if (bytes.length < next) return undefined;
    if (length === 0) return Buffer.concat(chunks);
    chunks.push(bytes.subarray(lineEnd + 2, next - 2));
    at = next;
  }
}
