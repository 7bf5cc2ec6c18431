// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingHttpHeaders, type Server } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server, type Http2Server } from "node:http2";
import { connect as connectTcp } from "node:net";
import { describe, it } from "node:test";

import { type ApiCaller, type Clock, parseTenantId, type SandboxService, SpaceError } from "@space/model";

import { type ApiAuditEvent, createE2bApi, type E2bApiOptions } from "./api.ts";

const id = "iaaaaaaaaaaaaaaaaaaa1";
const caller: ApiCaller = { tenantId: parseTenantId("ten_aaaaaaaaaaaaaaaa"), keyId: "k1" };
const goodKey = { "x-api-key": "e2b_00" };

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
function serviceWith(replaced: Partial<SandboxService>): SandboxService {
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
    setTimeout: unasked,
    kill: unasked,
    ...replaced,
  };
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Ask {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

interface Running extends AsyncDisposable {
  readonly ask: (ask: Ask) => Promise<Reply>;
  readonly port: number;
  readonly heard: ApiAuditEvent[];
  readonly clock: ReturnType<typeof stoppedClock>;
}

async function listen(server: Server | Http2Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  return address.port;
}

type Start = (service: Partial<SandboxService>, options?: Partial<E2bApiOptions>) => Promise<Running>;

function apiWith(service: Partial<SandboxService>, options: Partial<E2bApiOptions>) {
  const clock = stoppedClock();
  const heard: ApiAuditEvent[] = [];
  const api = createE2bApi({
    service: serviceWith(service),
    domain: "space.test",
    envdVersion: "0.6.13",
    clock,
    audit: (event) => heard.push(event),
    ...options,
  });
  return { api, clock, heard };
}

const overHttp1: Start = async (service, options = {}) => {
  const { api, clock, heard } = apiWith(service, options);
  const server = createServer(api);
  const port = await listen(server);
  const ask = async ({ method = "GET", path = "/", headers = {}, body }: Ask): Promise<Reply> => {
    const sent = httpRequest({ host: "127.0.0.1", port, method, path, headers });
    if (body !== undefined) sent.write(body); // and no length: chunked
    sent.end();
    const [response] = (await once(sent, "response")) as [
      AsyncIterable<Buffer> & { statusCode: number; headers: IncomingHttpHeaders },
    ]; // cast: what `response` carries
    return { status: response.statusCode, headers: response.headers, text: await textOf(response) };
  };
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { ask, port, heard, clock, [Symbol.asyncDispose]: stop };
};

const overHttp2: Start = async (service, options = {}) => {
  const { api, clock, heard } = apiWith(service, options);
  const server = createHttp2Server(api);
  const port = await listen(server);
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const ask = async ({ method = "GET", path = "/", headers = {}, body }: Ask): Promise<Reply> => {
    const stream = session.request(
      { ...headers, ":method": method, ":path": path },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    const [received] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status": number }]; // cast: what `response` carries
    return { status: received[":status"], headers: received, text: await textOf(stream) };
  };
  const stop = async (): Promise<void> => {
    session.destroy();
    server.close();
    await once(server, "close");
  };
  return { ask, port, heard, clock, [Symbol.asyncDispose]: stop };
};

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const json = (body: string | Buffer, headers: object = {}): Ask => ({
  method: "POST",
  headers: { ...goodKey, "content-type": "application/json", ...headers },
  body,
});

for (const [name, start] of [
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
] as const) {
  describe(`the API over ${name}`, () => {
    it("asks for the key before it looks at path, id, method or body", async () => {
      await using api = await start({});
      const asks: readonly Ask[] = [
        { path: "/nope" },
        { path: `/sandboxes/${id}` },
        { path: "/sandboxes/%zz" },
        { method: "PATCH", path: "/sandboxes" },
        { ...json("{broken"), path: "/sandboxes" },
        { ...json(Buffer.alloc(2 << 20)), path: "/v2/sandboxes" },
      ];
      for (const ask of asks) {
        for (const headers of [{}, { "x-api-key": "" }, { "x-api-key": "e2b_wrong" }]) {
          const reply = await api.ask({ ...ask, headers });
          assert.equal(reply.status, 401, JSON.stringify([ask.path, headers]));
          assert.equal((JSON.parse(reply.text) as { code: number }).code, 401);
        }
      }
      assert.equal(api.heard.length, 18);
      assert(api.heard.every((event) => event.status === 401 && event.caller === null));
    });

    it("says when it is ready, to anybody", async () => {
      let ready = false;
      await using api = await start({}, { ready: () => ready });
      const before = await api.ask({ path: "/health" });
      assert.equal(before.status, 503);
      assert.equal(before.headers["retry-after"], "1");
      ready = true;
      assert.deepEqual((await api.ask({ path: "/health?x" })).text, '{"status":"ok"}');
    });

    it("answers HEAD as GET, without a body", async () => {
      await using api = await start({ list: async () => [] });
      const reply = await api.ask({ method: "HEAD", path: "/v2/sandboxes", headers: goodKey });
      assert.equal(reply.status, 200);
      assert.equal(reply.headers["content-length"], "2");
      assert.equal(reply.text, "");
    });

    it("lets pages of any site ask and read, without a key for the preflight", async () => {
      await using api = await start({ list: async () => [] });
      const preflight = await api.ask({
        method: "OPTIONS",
        path: "/v2/sandboxes",
        headers: { origin: "https://a.test" },
      });
      assert.equal(preflight.status, 204);
      assert.equal(preflight.headers["access-control-allow-origin"], "*");
      assert.match(String(preflight.headers["access-control-allow-headers"]), /X-API-KEY/);
      const reply = await api.ask({ path: "/v2/sandboxes", headers: goodKey });
      assert.equal(reply.headers["access-control-allow-origin"], "*");
      for (const exposed of ["X-Next-Token", "X-Total-Running", "Retry-After", "RateLimit-Limit"]) {
        assert(String(reply.headers["access-control-expose-headers"]).includes(exposed), exposed);
      }
      const refused = await api.ask({ path: "/v2/sandboxes" });
      assert.equal(refused.headers["access-control-allow-origin"], "*");
    });

    it("tells a wrong path, a wrong method and an operation that it has not yet apart", async () => {
      await using api = await start({});
      assert.equal((await api.ask({ path: "/nope", headers: goodKey })).status, 404);
      const wrong = await api.ask({ method: "PUT", path: "/v2/sandboxes", headers: goodKey });
      assert.equal(wrong.status, 405);
      assert.equal(wrong.headers.allow, "GET, HEAD, OPTIONS, POST");
      const later = await api.ask({ ...json("{}"), path: `/sandboxes/${id}/fork` });
      assert.deepEqual(JSON.parse(later.text), {
        code: 501,
        message: "not supported yet: POST /sandboxes/{sandboxID}/fork",
      });
    });

    it("takes a body without a length, and none at all where nothing is required", async () => {
      const paused: boolean[] = [];
      await using api = await start({
        pause: async (_caller, _id, keepMemory) => {
          paused.push(keepMemory);
          return {} as never; // cast: nothing of the answer is shown
        },
      });
      const path = `/sandboxes/${id}/pause`;
      assert.equal((await api.ask({ method: "POST", path, headers: goodKey })).status, 204);
      assert.equal((await api.ask({ ...json('{"memory":false}'), path })).status, 204);
      assert.deepEqual(paused, [true, false]);
    });

    it("refuses a body that is no JSON, no UTF-8, compressed or of another type", async () => {
      await using api = await start({});
      const status = async (ask: Ask): Promise<number> =>
        (await api.ask({ ...ask, path: "/v2/sandboxes" })).status;
      assert.equal(await status(json("{broken")), 400);
      assert.equal(await status(json(Buffer.from([0x22, 0xff, 0x22]))), 400);
      assert.equal(await status(json('"text"')), 400);
      assert.equal(await status(json("{}", { "content-type": "application/x-www-form-urlencoded" })), 415);
      assert.equal(await status(json("{}", { "content-type": "application/jsonp" })), 415);
      assert.equal(await status(json("{}", { "content-encoding": "gzip" })), 415);
      assert.equal(await status(json("{}", { "content-type": "application/json; charset=utf-8" })), 400); // no template
    });

    it("names the field that is wrong, and quotes nothing of the body", async () => {
      await using api = await start({});
      const reply = await api.ask({
        ...json('{"templateID":"base","envVars":{"KEY":7}}'),
        path: "/v2/sandboxes",
      });
      assert.deepEqual(JSON.parse(reply.text), {
        code: 400,
        message: "envVars must be an object of strings",
        error_code: "input/invalid",
      });
    });

    it("answers 413 to a body over its limit, and goes on serving", async () => {
      await using api = await start({ list: async () => [] });
      const large = Buffer.alloc((1 << 20) + 1, 0x20);
      assert.equal((await api.ask({ ...json(large), path: "/v2/sandboxes" })).status, 413);
      assert.equal((await api.ask({ ...json(large.subarray(1)), path: "/v2/sandboxes" })).status, 400); // just white space
      assert.equal((await api.ask({ path: "/v2/sandboxes", headers: goodKey })).status, 200);
    });

    it("answers 503 when an operation does not end, and 500 without a detail when it has a bug", async () => {
      await using api = await start({
        get: () => new Promise(() => undefined),
        kill: () => Promise.reject(new TypeError("secret")),
      });
      const waiting = api.ask({ path: `/sandboxes/${id}`, headers: goodKey });
      while (api.heard.length === 0) {
        await new Promise((resume) => setImmediate(resume));
        api.clock.pass();
      }
      assert.equal((await waiting).status, 503);
      const bug = await api.ask({ method: "DELETE", path: `/sandboxes/${id}`, headers: goodKey });
      assert.deepEqual(JSON.parse(bug.text), { code: 500, message: "internal error" });
      assert.deepEqual(
        api.heard.map(({ operation, status, code }) => ({ operation, status, code })),
        [
          { operation: "get", status: 503, code: "deadline/passed" },
          { operation: "kill", status: 500, code: null },
        ],
      );
    });

    it("knows no sandbox by a name that is no id, and asks nobody for it", async () => {
      await using api = await start({});
      for (const bad of ["x", `${id}x`, "I".padEnd(21, "a"), "%2e%2e", "i%00"]) {
        const reply = await api.ask({ path: `/sandboxes/${bad}`, headers: goodKey });
        assert.equal(reply.status, 404, bad);
      }
    });
  });
}

describe("a client that misbehaves", () => {
  it("is answered with 408 when its body does not arrive, and cut off when it still does not end", async () => {
    await using api = await overHttp1({});
    const socket = connectTcp(api.port, "127.0.0.1");
    socket.write(
      "POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_00\r\nContent-Length: 10\r\n\r\n{",
    );
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    const closed = once(socket, "close");
    while (!text.includes("\r\n\r\n")) {
      await new Promise((resume) => setImmediate(resume));
      api.clock.pass();
    }
    assert.match(text, /^HTTP\/1\.1 408 /);
    api.clock.pass();
    await closed;
  });

  it("that goes away in the middle is heard of, and answered by nobody", async () => {
    await using api = await overHttp1({});
    const socket = connectTcp(api.port, "127.0.0.1");
    socket.write(
      "POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_00\r\nContent-Length: 10\r\n\r\n{",
    );
    await once(socket, "connect");
    setImmediate(() => socket.destroy());
    while (api.heard.length === 0) await new Promise((resume) => setImmediate(resume));
    assert.equal(api.heard[0]?.status, 0);
  });

  it("that never stops sending is cut off after a bounded number of bytes", async () => {
    const limits = { bodyBytes: 1 << 10, drainBytes: 64 << 10 };
    await using api = await overHttp1({}, { limits });
    const socket = connectTcp(api.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      "POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_00\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = `1000\r\n${" ".repeat(0x1000)}\r\n`;
    let sentBytes = 0;
    while (!socket.destroyed && sentBytes < 64 << 20) {
      socket.write(chunk);
      sentBytes += chunk.length;
      await new Promise((resume) => setImmediate(resume));
    }
    assert(sentBytes < 16 << 20, `${sentBytes} bytes were taken`);
    assert.equal(api.heard[0]?.status, 413);
  });
});
