// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";
import { HttpConnection as Connection, type HttpConnection, type PlainAnswer } from "./http-connection.ts";
import { UnsoundRun } from "./unsound.ts";

/** Where a benchmarked system listens, and the key to it. */
export const systemReadySchema = v.strictObject({
  apiUrl: v.string(),
  apiKey: v.string(),
  workerIds: v.array(v.string()),
});
export type SystemAddress = v.InferOutput<typeof systemReadySchema>;

const createdSchema = v.object({ sandboxID: v.string(), envdAccessToken: v.string() });
const agentPort = "49983";
const lifeSeconds = 3600;

export interface CreatedSandbox {
  readonly sandboxId: string;
  readonly accessToken: string;
}

/** The headers with which E2B's clients reach a sandbox's agent in URL mode. */
export function agentHeaders({ sandboxId, accessToken }: CreatedSandbox): Readonly<Record<string, string>> {
  return { "X-Access-Token": accessToken, "E2b-Sandbox-Id": sandboxId, "E2b-Sandbox-Port": agentPort };
}

/** One caller over one persistent connection, who speaks as E2B's SDKs do. Anything unexpected is an {@link UnsoundRun}. */
export class SandboxClient {
  readonly #connection: HttpConnection;
  readonly #apiKey: string;

  static async open({ apiUrl, apiKey }: Pick<SystemAddress, "apiUrl" | "apiKey">): Promise<SandboxClient> {
    return new SandboxClient(await Connection.open(apiUrl), apiKey);
  }

  private constructor(connection: HttpConnection, apiKey: string) {
    this.#connection = connection;
    this.#apiKey = apiKey;
  }

  async create(): Promise<CreatedSandbox> {
    const body = Buffer.from(JSON.stringify({ templateID: "base", timeout: lifeSeconds }));
    const headers = { "X-API-Key": this.#apiKey, "content-type": "application/json" };
    const answer = await this.#connection.ask({ method: "POST", path: "/sandboxes", headers, body });
    expect("create", answer, 201);
    const created = v.parse(createdSchema, JSON.parse(answer.body.toString("utf8")));
    return { sandboxId: created.sandboxID, accessToken: created.envdAccessToken };
  }

  async kill({ sandboxId }: Pick<CreatedSandbox, "sandboxId">): Promise<void> {
    await this.ask("DELETE", `/sandboxes/${sandboxId}`, 204);
  }

  /** One request of the API whose answer must have this status: its body. */
  async ask(
    method: "GET" | "POST" | "DELETE",
    path: string,
    wanted: number,
    body?: object,
  ): Promise<unknown> {
    const headers = { "X-API-Key": this.#apiKey, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
    const answer = await this.#connection.ask({ method, path, headers, ...sent });
    expect(`${method} ${path}`, answer, wanted);
    return answer.body.length === 0 ? undefined : JSON.parse(answer.body.toString("utf8"));
  }

  /** Runs `/bin/true` and resolves when its end has come, with exit status 0. */
  async runTrue(sandbox: CreatedSandbox): Promise<void> {
    await this.#start(sandbox, startTrue);
  }

  /** Runs a script of `/bin/sh`, which must end with 0. Resolves with its output. */
  async shell(sandbox: CreatedSandbox, script: string): Promise<string> {
    const process = { cmd: "/bin/sh", args: ["-c", script], envs: {} };
    return outputIn(await this.#start(sandbox, enveloped({ process, stdin: false })));
  }

  async #start(sandbox: CreatedSandbox, body: Buffer): Promise<Buffer> {
    const answer = await this.#connection.ask({
      method: "POST",
      path: "/process.Process/Start",
      headers: {
        ...agentHeaders(sandbox),
        "content-type": "application/connect+json",
        "connect-protocol-version": "1",
      },
      body,
    });
    expect("start", answer, 200);
    if (!answer.body.includes('"status":"exit status 0"'))
      throw new UnsoundRun(`a command did not end well: ${answer.body.toString("utf8", 0, 300)}`);
    return answer.body;
  }

  async writeFile(sandbox: CreatedSandbox, path: string, content: Buffer): Promise<void> {
    const boundary = "space-bench-boundary";
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${path}"\r\ncontent-type: application/octet-stream\r\n\r\n`;
    const answer = await this.#connection.ask({
      method: "POST",
      path: `/files?path=${encodeURIComponent(path)}&username=user`,
      headers: { ...agentHeaders(sandbox), "content-type": `multipart/form-data; boundary=${boundary}` },
      body: Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${boundary}--\r\n`)]),
    });
    expect("write", answer, 200);
  }

  close(): void {
    this.#connection.close();
  }
}

const startTrue = enveloped({ process: { cmd: "/bin/true", args: [], envs: {} }, stdin: false });

/** One message of a Connect stream. */
function enveloped(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const envelope = Buffer.alloc(5 + body.length);
  envelope.writeUInt32BE(body.length, 1);
  body.copy(envelope, 5);
  return envelope;
}

const outputSchema = v.object({ event: v.object({ data: v.object({ stdout: v.string() }) }) });

/** What the messages of a Connect stream hold of a process's output. */
export function outputIn(stream: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 5 <= stream.length; ) {
    const end = at + 5 + stream.readUInt32BE(at + 1);
    const message = v.safeParse(outputSchema, JSON.parse(stream.toString("utf8", at + 5, end)));
    if (message.success) parts.push(Buffer.from(message.output.event.data.stdout, "base64"));
    at = end;
  }
  return Buffer.concat(parts).toString("utf8");
}

function expect(what: string, { status, body }: PlainAnswer, wanted: number): void {
  if (status !== wanted)
    throw new UnsoundRun(`${what} was answered with ${status}: ${body.toString("utf8", 0, 300)}`);
}
