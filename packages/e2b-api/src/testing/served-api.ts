// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The API behind a real server on loopback, over a service that a test writes and a clock that stands still.

import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
} from "node:http";
import {
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpStatusHeader,
} from "node:http2";

import { type ApiCaller, type AuditFields, type Clock, parseTenantId, SpaceError } from "@space/model";

import { createE2bApi, type E2bApiOptions } from "../api.ts";
import type { ApiService } from "../operation-call.ts";

const caller: ApiCaller = { tenantId: parseTenantId("ten_aaaaaaaaaaaaaaaa"), keyId: "k1" };
export const goodKey = { "x-api-key": "e2b_00" };

/** Time stands still; `pass` calls what was set for later. */
function stoppedClock(): Clock & { readonly pass: () => void } {
  const waiting = new Set<() => void>();
  return {
    wallMs: () => 0,
    monotonicMs: () => 0,
    after: (_delayMs, callback) => {
      waiting.add(callback);
      return () => waiting.delete(callback);
    },
    pass: () => {
      for (const callback of [...waiting]) callback();
    },
  };
}

/** Knows one key, and fails every other call that a test does not replace. */
function serviceWith(replaced: Partial<ApiService>): ApiService {
  const unasked = (): never => {
    throw new TypeError("this test asks for none of that");
  };
  return {
    authenticate: async (key) => {
      if (key === undefined) throw new SpaceError("key/missing", {});
      if (key.reveal() !== goodKey["x-api-key"]) throw new SpaceError("key/unknown", {});
      return caller;
    },
    create: unasked,
    connect: unasked,
    resume: unasked,
    get: unasked,
    list: unasked,
    pause: unasked,
    move: unasked,
    setTimeout: unasked,
    kill: unasked,
    snapshot: unasked,
    listSnapshots: unasked,
    deleteSnapshot: unasked,
    fork: unasked,
    ...replaced,
  };
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Ask {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface Running extends AsyncDisposable {
  readonly ask: (ask: Ask) => Promise<Reply>;
  /** Sends a DELETE; the returned function goes away from it and waits until the server has noticed. */
  readonly abandon: (path: string) => () => Promise<void>;
  readonly port: number;
  readonly failures: unknown[];
  readonly heard: AuditFields["api/answered"][];
  readonly clock: ReturnType<typeof stoppedClock>;
}

async function listen(server: Server | Http2Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  return address.port;
}

export type Start = (service: Partial<ApiService>, options?: Partial<E2bApiOptions>) => Promise<Running>;

function apiWith(service: Partial<ApiService>, options: Partial<E2bApiOptions>) {
  const clock = stoppedClock();
  const heard: AuditFields["api/answered"][] = [];
  const failures: unknown[] = [];
  const api = createE2bApi({
    service: serviceWith(service),
    domain: "space.test",
    envdVersion: "0.6.13",
    clock,
    audit: { record: (_name, fields) => heard.push(fields as AuditFields["api/answered"]) }, // cast: it records nothing else
    failed: (failure) => failures.push(failure),
    ...options,
  });
  return { api, clock, heard, failures };
}

export const overHttp1: Start = async (service, options = {}) => {
  const { api, ...known } = apiWith(service, options);
  const server = createServer(api);
  const closed = Promise.withResolvers<void>();
  server.once("request", (request) => request.once("close", closed.resolve));
  const abandon = (path: string) => {
    const sent = httpRequest({ host: "127.0.0.1", port, method: "DELETE", path, headers: goodKey });
    sent.on("error", () => undefined);
    sent.end();
    return async () => {
      sent.destroy();
      await closed.promise;
    };
  };
  const port = await listen(server);
  const ask = async ({ method = "GET", path = "/", headers = {}, body }: Ask): Promise<Reply> => {
    const sent = httpRequest({ host: "127.0.0.1", port, method, path, headers });
    if (body !== undefined) sent.write(body); // and no length: chunked
    sent.end();
    const answered = Promise.withResolvers<IncomingMessage>();
    sent.once("response", answered.resolve).once("error", answered.reject);
    const response = await answered.promise;
    return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
  };
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { ask, abandon, port, ...known, [Symbol.asyncDispose]: stop };
};

export const overHttp2: Start = async (service, options = {}) => {
  const { api, ...known } = apiWith(service, options);
  const server = createHttp2Server(api);
  const closed = Promise.withResolvers<void>();
  server.once("stream", (stream) => stream.once("close", closed.resolve));
  const abandon = (path: string) => {
    const stream = session.request({ ...goodKey, ":method": "DELETE", ":path": path });
    stream.on("error", () => undefined);
    return async () => {
      stream.close(constants.NGHTTP2_CANCEL);
      await closed.promise;
    };
  };
  const port = await listen(server);
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const ask = async ({ method = "GET", path = "/", headers = {}, body }: Ask): Promise<Reply> => {
    const stream = session.request(
      { ...headers, ":method": method, ":path": path },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    const answered = Promise.withResolvers<IncomingHttpHeaders & IncomingHttpStatusHeader>();
    stream.once("response", answered.resolve).once("error", answered.reject);
    const received = await answered.promise;
    return { status: received[":status"] ?? 0, headers: received, text: await textOf(stream) };
  };
  const stop = async (): Promise<void> => {
    session.destroy();
    server.close();
    await once(server, "close");
  };
  return { ask, abandon, port, ...known, [Symbol.asyncDispose]: stop };
};

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
