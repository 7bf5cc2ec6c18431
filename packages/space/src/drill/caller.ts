// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { Agent, type IncomingMessage, request } from "node:http";
import { systemClock } from "../host/system-clock.ts";

const agentPort = "49983";
/** A caller that gets no answer for so long has got none. */
const answerLimitMs = 120_000;

/** The sandbox that a request is for, and the caller's token of it. */
export interface SandboxAddress {
  readonly sandboxId: string;
  readonly accessToken: string;
}

/** What one request came to, as a caller sees it. */
export type Answer =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly retryAfter: boolean;
      readonly body: Buffer;
    }
  /** No whole answer came. */
  | { readonly kind: "broken"; readonly problem: string };

/** One caller: one kept connection to one gateway. */
export class Caller {
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(url: string) {
    this.#url = new URL(url);
  }

  get(sandbox: SandboxAddress, path: string): Promise<Answer> {
    return this.#ask(sandbox, { method: "GET", path });
  }

  /** Runs a program; the answer's body is a Connect stream. */
  start(sandbox: SandboxAddress, cmd: string, args: readonly string[]): Promise<Answer> {
    const message = { process: { cmd, args, envs: {} }, stdin: false };
    const headers = { "content-type": "application/connect+json", "connect-protocol-version": "1" };
    const body = enveloped(JSON.stringify(message));
    return this.#ask(sandbox, { method: "POST", path: "/process.Process/Start", headers, body });
  }

  close(): void {
    this.#agent.destroy();
  }

  #ask(
    { sandboxId, accessToken }: SandboxAddress,
    asked: {
      readonly method: string;
      readonly path: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: Buffer;
    },
  ): Promise<Answer> {
    const { method, path, body } = asked;
    const routing = {
      "x-access-token": accessToken,
      "e2b-sandbox-id": sandboxId,
      "e2b-sandbox-port": agentPort,
      ...(body === undefined ? {} : { "content-length": String(body.length) }),
      ...asked.headers,
    };
    return new Promise((resolve) => {
      const sent = request(this.#url, { method, path, headers: routing, agent: this.#agent });
      const broken = (problem: string): void => {
        cancel();
        sent.destroy();
        resolve({ kind: "broken", problem });
      };
      const cancel = systemClock.after(answerLimitMs, () => broken("no answer in time"));
      sent.on("error", (error: NodeJS.ErrnoException) => broken(error.code ?? error.message));
      sent.on("response", (response) => {
        read(response).then(
          (bytes) => {
            cancel();
            const retryAfter = response.headers["retry-after"] !== undefined;
            resolve({ kind: "answered", status: response.statusCode ?? 0, retryAfter, body: bytes });
          },
          () => broken("the answer broke off"),
        );
      });
      sent.end(body);
    });
  }
}

async function read(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

/** One message of a Connect stream. */
export function enveloped(message: string): Buffer {
  const body = Buffer.from(message);
  const envelope = Buffer.alloc(5 + body.length);
  envelope.writeUInt32BE(body.length, 1);
  body.copy(envelope, 5);
  return envelope;
}

/** The messages of a Connect stream, each with its flags. A tail that is no whole message is left out. */
export function messagesOf(stream: Buffer): { readonly flags: number; readonly message: unknown }[] {
  const found = [];
  for (let at = 0; at + 5 <= stream.length; ) {
    const end = at + 5 + stream.readUInt32BE(at + 1);
    if (end > stream.length) break;
    const message: unknown = JSON.parse(stream.toString("utf8", at + 5, end));
    found.push({ flags: stream.readUInt8(at), message });
    at = end;
  }
  return found;
}
