// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { SpaceError } from "@space/model";

import { type Ask, goodKey, overHttp1, overHttp2, type Reply } from "./testing/served-api.ts";

const id = "iaaaaaaaaaaaaaaaaaaa1";

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
      assert(api.heard.every((event) => event.status === 401 && event.tenantId === null));
    });

    it("says when it is ready, to anybody", async () => {
      let ready = false;
      await using api = await start({}, { ready: () => ready });
      const before = await api.ask({ path: "/health" });
      assert.equal(before.status, 503);
      assert.equal(before.headers["retry-after"], "1");
      ready = true;
      assert.deepEqual((await api.ask({ path: "/health?x" })).text, '{"status":"ok"}');
      assert.deepEqual(api.heard, []);
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
      const later = await api.ask({ ...json("{}"), path: "/v3/templates" });
      assert.deepEqual(JSON.parse(later.text), {
        code: 501,
        message: "not supported yet: POST /v3/templates",
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

    it("moves where it is asked to, or anywhere, and says whether the memory went along", async () => {
      const asked: unknown[] = [];
      await using api = await start({
        move: async (_caller, _id, request) => {
          asked.push(request);
          if (asked.length === 3) throw new SpaceError("worker/none-free", {});
          return { memoryMoved: asked.length === 1 } as never; // cast: nothing else of the answer is shown
        },
      });
      const path = `/sandboxes/${id}/move`;
      const move = (body?: string): Promise<Reply> =>
        api.ask({ method: "POST", path, headers: goodKey, ...(body === undefined ? {} : { body }) });
      const workerID = `wrk_${"b".repeat(16)}`;
      const [there, anywhere, full] = [await move(JSON.stringify({ workerID })), await move(), await move()];
      assert.deepEqual([there.status, there.headers["space-memory-moved"]], [204, "true"]);
      assert.deepEqual([anywhere.status, anywhere.headers["space-memory-moved"]], [204, "false"]);
      assert.equal(full.status, 503);
      assert.deepEqual(asked, [{ workerId: workerID }, {}, {}]);
      assert.equal((await move(JSON.stringify({ workerID: "nowhere" }))).status, 400);
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
      assert.equal(api.failures.length, 2);
      assert.match(String(api.failures[1]), /secret/);
    });

    it("does not mind a client that goes away while its operation runs", async () => {
      const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      await using api = await start({
        kill: async () => {
          ask();
          await ended;
        },
        list: async () => [],
      });
      const abandon = api.abandon(`/sandboxes/${id}`);
      await asked;
      await abandon();
      end();
      while (api.heard.length === 0) await new Promise((resume) => setImmediate(resume));
      assert.equal(api.heard[0]?.operation, "kill");
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
