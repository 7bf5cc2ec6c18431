// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// E2B's published clients, two versions of them and unmodified, against the control-plane surface on loopback.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, beforeEach, describe, it } from "node:test";

import { createE2bApi } from "@space/e2b-api";
import { type ApiCaller, type Clock, parseTenantId, SpaceError } from "@space/model";
import * as e2b51 from "e2b";
import * as e2b45 from "e2b-2-45";

import { FakeSandboxService } from "../src/fake-sandbox-service.ts";
import { RecordingAudit } from "../src/recording-audit.ts";

type Sdk = typeof e2b51;
const sdks: readonly (readonly [version: string, sdk: Sdk])[] = [
  ["2.51", e2b51],
  ["2.45", e2b45 as unknown as Sdk], // cast: the older one has these members with the same meaning
];

const key = `e2b_${"0".repeat(40)}`;
const otherKey = `e2b_${"1".repeat(40)}`;
const callerOf = (letter: string): ApiCaller => ({
  tenantId: parseTenantId(`ten_${letter.repeat(16)}`),
  keyId: letter,
});
const keys = new Map([
  [key, callerOf("a")],
  [otherKey, callerOf("b")],
]);

let nowMs = Date.UTC(2026, 10, 30);
/** Time moves only when a test moves it; nothing is ever late. */
const clock: Clock = { wallMs: () => nowMs, monotonicMs: () => nowMs, after: () => () => undefined };
const newService = (): FakeSandboxService => new FakeSandboxService({ clock, keys, sandboxesPerTenant: 120 });

let service = newService();
const audit = new RecordingAudit();
let apiUrl = "";
const server = createServer((request, response) => {
  createE2bApi({ service, domain: "space.test:8443", envdVersion: "0.6.13", clock, audit })(
    request,
    response,
  );
});

before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  apiUrl = `http://127.0.0.1:${address.port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  service = newService();
});

const raw = (
  path: string,
  init: { readonly method?: string; readonly body?: string } = {},
): Promise<Response> =>
  fetch(apiUrl + path, { ...init, headers: { "X-API-KEY": key, "Content-Type": "application/json" } });

for (const [version, { Sandbox, ...sdk }] of sdks) {
  describe(`the E2B SDK ${version}`, () => {
    const options = (more: object = {}) => ({
      apiKey: key,
      apiUrl,
      retries: 0,
      requestTimeoutMs: 10_000,
      ...more,
    });

    it("creates a sandbox with what it was asked for, and knows how to reach it", async () => {
      const metadata = { purpose: "test", "a b&c=": "ü%" };
      const sandbox = await Sandbox.create(
        "base",
        options({ metadata, envs: { A: "1" }, timeoutMs: 60_000 }),
      );
      assert.match(sandbox.sandboxId, /^i[a-z0-9]{20}$/);
      assert.equal(sandbox.getHost(3000), `3000-${sandbox.sandboxId}.space.test:8443`);
      const [recorded] = audit.of("api/answered").slice(-1);
      assert.deepEqual([recorded?.sandboxId, recorded?.status], [sandbox.sandboxId, 201]);
      const asked = service.created[0];
      assert.deepEqual(asked?.metadata, metadata);
      assert.deepEqual(asked.variables, { A: "1" });
      assert.equal(asked.timeoutMs, 60_000);
      assert.equal(asked.onTimeout, "kill");

      const info = await sandbox.getInfo();
      assert.equal(info.sandboxId, sandbox.sandboxId);
      assert.equal(info.templateId, "base");
      assert.equal(info.state, "running");
      assert.deepEqual(info.metadata, metadata);
      assert.equal(info.envdVersion, "0.6.13");
      assert.equal(info.endAt.getTime() - info.startedAt.getTime(), 60_000);
      assert.equal(info.cpuCount, 2);
      assert.equal(info.memoryMB, 512);
    });

    it("asks for a pause at the end", async () => {
      await Sandbox.create("base", options({ lifecycle: { onTimeout: "pause", autoResume: true } }));
      assert.equal(service.created[0]?.onTimeout, "pause");
      assert.equal(service.created[0].autoResume, true);
    });

    it("kills once, and hears that there is nothing more to kill", async () => {
      const sandbox = await Sandbox.create("base", options());
      assert.equal(await sandbox.kill(), true);
      assert.equal(await Sandbox.kill(sandbox.sandboxId, options()), false);
      await assert.rejects(Sandbox.getInfo(sandbox.sandboxId, options()), sdk.NotFoundError);
    });

    it("pauses once, then hears that it is paused, and connects to bring it back", async () => {
      const sandbox = await Sandbox.create("base", options());
      assert.equal(await sandbox.pause(), true);
      assert.equal(await Sandbox.pause(sandbox.sandboxId, options()), false);
      assert.equal((await sandbox.getInfo()).state, "paused");

      const back = await Sandbox.connect(sandbox.sandboxId, options({ timeoutMs: 30_000 }));
      assert.equal(back.sandboxId, sandbox.sandboxId);
      const detail = (await (await raw(`/sandboxes/${sandbox.sandboxId}`)).json()) as {
        space: { generation: string };
      };
      assert.equal(detail.space.generation, "2");
      assert.equal((await back.getInfo()).state, "running");
    });

    it("extends the end when it connects, and shortens it only by setTimeout", async () => {
      const sandbox = await Sandbox.create("base", options({ timeoutMs: 60_000 }));
      const endAt = async (): Promise<number> => (await sandbox.getInfo()).endAt.getTime();
      const first = await endAt();
      await Sandbox.connect(sandbox.sandboxId, options({ timeoutMs: 10_000 }));
      assert.equal(await endAt(), first);
      await sandbox.setTimeout(5000);
      assert.equal(await endAt(), nowMs + 5000);
      await Sandbox.connect(sandbox.sandboxId, options({ timeoutMs: 90_000 }));
      assert.equal(await endAt(), nowMs + 90_000);
    });

    it("pages through a list, newest first, and finds its end also when the last page is full", async () => {
      const ids: string[] = [];
      for (let made = 0; made < 6; made += 1) {
        nowMs += 1000;
        ids.unshift((await Sandbox.create("base", options())).sandboxId);
      }
      await Sandbox.pause(ids[2]!, options());
      for (const limit of [2, 3, 4, 6, 7]) {
        const pages = Sandbox.list({ ...options(), limit });
        const seen: string[] = [];
        let requests = 0;
        while (pages.hasNext) {
          requests += 1;
          for (const { sandboxId } of await pages.nextItems()) seen.push(sandboxId);
        }
        assert.deepEqual(seen, ids, `pages of ${limit}`);
        assert.equal(requests, Math.ceil(6 / limit));
      }
    });

    it("filters a list by metadata, however awkward, and by state", async () => {
      const awkward = { "k e/y": "a&b=c %25+ü?", "100%": "x" };
      const wanted = await Sandbox.create("base", options({ metadata: awkward }));
      await Sandbox.create("base", options({ metadata: { "k e/y": "other" } }));
      const list = async (query: object): Promise<string[]> =>
        (await Sandbox.list({ ...options(), query }).nextItems()).map(({ sandboxId }) => sandboxId);
      assert.deepEqual(await list({ metadata: awkward }), [wanted.sandboxId]);
      assert.deepEqual(await list({ metadata: { nobody: "x" } }), []);
      await wanted.pause();
      assert.deepEqual(await list({ state: ["paused"] }), [wanted.sandboxId]);
      assert.equal((await list({ state: ["running", "paused"] })).length, 2);
    });

    it("sees neither another tenant's sandboxes nor whether they exist", async () => {
      const sandbox = await Sandbox.create("base", options());
      const other = options({ apiKey: otherKey });
      assert.deepEqual(await Sandbox.list(other).nextItems(), []);
      assert.equal(await Sandbox.kill(sandbox.sandboxId, other), false);
      await assert.rejects(Sandbox.connect(sandbox.sandboxId, other), sdk.NotFoundError);
      await assert.rejects(Sandbox.setTimeout(sandbox.sandboxId, 1000, other), sdk.NotFoundError);
      await assert.rejects(Sandbox.pause(sandbox.sandboxId, other), sdk.NotFoundError);
      assert.equal((await sandbox.getInfo()).state, "running");
    });

    it("throws an authentication error for a key that nobody has", async () => {
      const wrong = options({ apiKey: `e2b_${"f".repeat(40)}` });
      await assert.rejects(Sandbox.create("base", wrong), sdk.AuthenticationError);
    });

    it("throws a sandbox error with the status for what is wrong or unknown", async () => {
      await assert.rejects(Sandbox.create("nope", options()), (error: Error) => {
        assert(error instanceof sdk.SandboxError);
        assert.equal(error.message, "404: template 'nope' not found");
        return true;
      });
      await assert.rejects(
        Sandbox.create("base", options({ timeoutMs: 86_401_000 })),
        /400: timeout must be at most 86400/,
      );
      const closed = options({ network: { allowPublicTraffic: false } });
      await assert.rejects(
        Sandbox.create("base", closed),
        /501: not supported yet: network.allowPublicTraffic/,
      );
    });

    it("throws a rate-limit error at the limit", async () => {
      service.failNext = new SpaceError("limit/sandboxes", { limit: 1 });
      await assert.rejects(Sandbox.create("base", options()), sdk.RateLimitError);
    });

    it("throws when the service is busy, and the sandbox runs on", async () => {
      const sandbox = await Sandbox.create("base", options());
      service.failNext = new SpaceError("substrate/failed", { step: "freeze" });
      // The older SDK has no class of its own for 503.
      const expected = version === "2.45" ? /503/ : sdk.ServiceBusyError;
      await assert.rejects(sandbox.pause(), expected);
      assert.equal((await sandbox.getInfo()).state, "running");
      service.failNext = new SpaceError("store/failed", { step: "read" });
      await assert.rejects(sandbox.getInfo(), expected);
    });

    it("hears 404 when the time is over", async () => {
      const sandbox = await Sandbox.create("base", options({ timeoutMs: 1000 }));
      nowMs += 1000;
      await assert.rejects(sandbox.getInfo(), sdk.NotFoundError);
    });
  });
}

describe("snapshots and forks, through E2B's newest client", () => {
  const { Sandbox } = e2b51;
  const options = (more: object = {}) => ({ apiKey: key, apiUrl, ...more });

  it("takes snapshots, creates from them, lists them page by page, and deletes each once", async () => {
    const sandbox = await Sandbox.create("base", options());
    const { endAt } = await sandbox.getInfo();
    const plain = await sandbox.createSnapshot();
    assert.match(plain.snapshotId, /^s[a-z0-9]{19}:default$/);
    assert.deepEqual(plain.names, []);
    const named = await sandbox.createSnapshot({ name: "mine:v1" });
    assert.equal(named.snapshotId, `${callerOf("a").tenantId}/mine:v1`);
    assert.deepEqual(named.names, [named.snapshotId]);
    assert.deepEqual((await sandbox.getInfo()).endAt, endAt);
    for (const { snapshotId } of [plain, named]) {
      await Sandbox.create(snapshotId, options());
      assert.equal(service.created.at(-1)?.template, snapshotId);
    }
    const pages = Sandbox.listSnapshots(options({ limit: 1 }));
    const seen: unknown[] = [];
    while (pages.hasNext) seen.push(...(await pages.nextItems()));
    assert.deepEqual(seen, [named, plain]);
    assert.deepEqual(await sandbox.listSnapshots().nextItems(), [named, plain]);
    assert.deepEqual(await Sandbox.listSnapshots(options({ name: "nobody's" })).nextItems(), []);
    assert.deepEqual(await Sandbox.listSnapshots(options({ sandboxId: "nobody's" })).nextItems(), []);
    for (const { snapshotId } of [plain, named]) {
      assert.equal(await Sandbox.deleteSnapshot(snapshotId, options()), true, snapshotId);
      assert.equal(await Sandbox.deleteSnapshot(snapshotId, options()), false, snapshotId);
      await assert.rejects(Sandbox.create(snapshotId, options()), /404/);
    }
    assert.equal(await Sandbox.deleteSnapshot("base", options()), false, "no template of the installation");
  });

  it("forks: one entry for each child, a sandbox or why there is none", async () => {
    const sandbox = await Sandbox.create("base", options());
    const [child] = await sandbox.fork();
    assert.ok(child instanceof Sandbox);
    assert.notEqual(child.sandboxId, sandbox.sandboxId);
    assert.equal((await child.getInfo()).state, "running");
    const many = await sandbox.fork({ count: 100, timeoutMs: 5000 });
    assert.equal(many.filter((one) => one instanceof Sandbox).length, 100);
    assert.ok(many[0] instanceof Sandbox);
    assert.equal((await many[0].getInfo()).endAt.getTime(), nowMs + 5000);
    const told = await raw(`/sandboxes/${sandbox.sandboxId}/snapshots`, { method: "POST", body: "{}" });
    const { space } = (await told.json()) as { space: { memory: string } }; // cast: our own API's answer
    assert.equal(space.memory, "none", "what could not be kept is told");
    const limited = await sandbox.fork({ count: 20 });
    assert.equal(limited.filter((one) => one instanceof e2b51.RateLimitError).length, 2);
  });

  it("says why not: gone, paused, busy; and no other number than 1 to 100", async () => {
    const sandbox = await Sandbox.create("base", options());
    for (const count of [0, 101, 1.5])
      await assert.rejects(sandbox.fork({ count }), /400: count must be/, String(count));
    await assert.rejects(sandbox.createSnapshot({ name: "a b" }), /400: name must be/);
    for (const make of [() => sandbox.createSnapshot(), () => sandbox.fork()]) {
      service.failNext = new SpaceError("substrate/failed", { step: "snapshot" });
      await assert.rejects(make(), e2b51.ServiceBusyError);
      assert.equal((await sandbox.getInfo()).state, "running");
    }
    await sandbox.pause();
    await assert.rejects(sandbox.createSnapshot(), /409/);
    await assert.rejects(sandbox.fork(), /409/);
    await sandbox.kill();
    await assert.rejects(sandbox.createSnapshot(), e2b51.SandboxNotFoundError);
    await assert.rejects(sandbox.fork(), e2b51.SandboxNotFoundError);
    const [first, second] = [await raw("/snapshots?limit=0"), await raw("/snapshots?nextToken=x")];
    assert.deepEqual([first.status, second.status], [400, 400]);
  });
});

describe("the paths that these SDKs do not use", () => {
  const post = async (
    path: string,
    body: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await raw(path, { method: "POST", body: JSON.stringify(body) });
    const text = await response.text();
    return {
      status: response.status,
      body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
    };
  };
  const create = async (): Promise<string> =>
    String((await post("/sandboxes", { templateID: "base" })).body["sandboxID"]);

  it("resume what is paused, and only that, on the worker that was asked for", async () => {
    const id = await create();
    assert.equal((await post(`/sandboxes/${id}/resume`, {})).status, 409);
    await post(`/sandboxes/${id}/pause`, {});
    assert.equal((await post(`/sandboxes/${id}/resume`, { workerID: "wrk_x" })).status, 400);
    assert.equal((await post(`/sandboxes/${id}/resume`, { workerID: "wrk_bbbbbbbbbbbbbbbb" })).status, 201);
    const detail = (await (await raw(`/sandboxes/${id}`)).json()) as { space: unknown };
    assert.deepEqual(detail.space, {
      generation: "2",
      workerID: "wrk_bbbbbbbbbbbbbbbb",
      autoRecover: false,
      recoveredFrom: null,
      snapshot: { digest: "d".repeat(64), memory: "frozen-on-worker", sizeBytes: 4096 },
    });
  });

  it("tell a connect to what ran already from one that brought it back", async () => {
    const id = await create();
    assert.equal((await post(`/v2/sandboxes/${id}/connect`, {})).status, 200);
    assert.equal((await post(`/sandboxes/${id}/connect`, {})).status, 400); // the first version needs a time-out
    await post(`/sandboxes/${id}/pause`, { memory: false });
    assert.equal((await post(`/sandboxes/${id}/connect`, { timeout: 60 })).status, 201);
  });

  it("refresh the end of what runs without ever shortening it", async () => {
    const id = await create(); // lives 15 s
    const endAt = async (): Promise<number> =>
      Date.parse(((await (await raw(`/sandboxes/${id}`)).json()) as { endAt: string }).endAt);
    assert.equal((await post(`/sandboxes/${id}/refreshes`, { duration: 10 })).status, 204);
    assert.equal(await endAt(), nowMs + 15_000);
    assert.equal((await post(`/sandboxes/${id}/refreshes`, { duration: 60 })).status, 204);
    assert.equal(await endAt(), nowMs + 60_000);
    await post(`/sandboxes/${id}/pause`, {});
    assert.equal((await post(`/sandboxes/${id}/refreshes`, { duration: 60 })).status, 409);
  });

  it("list without pages what runs, and count it where one page is all", async () => {
    const ids = [await create(), await create(), await create()];
    await post(`/sandboxes/${ids[0]}/pause`, {});
    assert.equal(((await (await raw("/sandboxes")).json()) as unknown[]).length, 2);
    const whole = await raw("/v2/sandboxes?limit=3");
    assert.equal(whole.headers.get("x-total-running"), "2");
    assert.equal(whole.headers.has("x-next-token"), false);
    const part = await raw("/v2/sandboxes?limit=2");
    assert.equal(part.headers.has("x-total-running"), false);
    assert.equal(part.headers.has("x-next-token"), true);
  });
});
