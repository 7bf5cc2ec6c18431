// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type Clock, isSpaceError, SpaceError } from "@space/model";
import { frameType, headLimitBytes } from "./frame.ts";
import { decodeJson, encodeJson } from "./json.ts";
import { type Linked, linked, rawPeer, settled } from "./linked.fixture.ts";
import {
  callRpc,
  decodeError,
  defaultRpcDeadlineMs,
  encodeError,
  type RpcHandler,
  rpcMethod,
  serveRpc,
} from "./rpc.ts";

/** Time that passes when told to. */
class HandClock implements Clock {
  readonly #alarms = new Map<() => void, number>();
  wallMs(): number {
    return 0;
  }
  monotonicMs(): number {
    return 0;
  }
  after(delayMs: number, callback: () => void): () => void {
    this.#alarms.set(callback, delayMs);
    return () => this.#alarms.delete(callback);
  }
  get waits(): number[] {
    return [...this.#alarms.values()];
  }
  ring(): void {
    for (const callback of [...this.#alarms.keys()]) callback();
    this.#alarms.clear();
  }
}

function served(handlers: Readonly<Record<string, RpcHandler>>): Linked {
  return linked({
    onOpen: (stream, head) =>
      serveRpc(stream, decodeJson(head.toString()) as { rpc: string }, new Map(Object.entries(handlers))),
  });
}

const code = (name: string) => (error: unknown) => error instanceof SpaceError && error.code === name;

it("carries parameters there and the result back", async () => {
  const clock = new HandClock();
  const { near, far } = served({ double: async (params) => (params as { n: bigint }).n * 2n });
  assert.equal(await callRpc(near, clock, { method: "double", params: { n: 21n } }), 42n);
  assert.deepEqual([clock.waits, near.size, far.size], [[], 0, 0]);
});

it("answers null for nothing, and knows a command by its name", async () => {
  const { near } = served({ nothing: async () => undefined });
  assert.equal(await callRpc(near, new HandClock(), { method: "nothing", params: null }), null);
  assert.deepEqual([{ rpc: "a" }, { rpc: 1 }, {}, null, "rpc"].map(rpcMethod), [
    "a",
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

it("carries a SpaceError with its details, whether thrown at once or later", async () => {
  const error = new SpaceError("sandbox/not-found", { sandboxId: "x" }, { cause: new Error("inside") });
  const { near, bugs } = served({
    later: async () => Promise.reject(error),
    atOnce: () => {
      throw error;
    },
  });
  for (const method of ["later", "atOnce"]) {
    await assert.rejects(callRpc(near, new HandClock(), { method, params: null }), (got) => {
      assert.ok(isSpaceError(got, "sandbox/not-found"));
      assert.deepEqual([got.details, got.cause], [{ sandboxId: "x" }, undefined]);
      return true;
    });
  }
  assert.deepEqual(bugs, []);
});

it("shows any other error as a bug that says only where, and reports it", async () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const { near, bugs } = served({
    bug: async () => Promise.reject(new Error("secret")),
    circular: async () => circular,
  });
  for (const method of ["bug", "circular"]) {
    await assert.rejects(callRpc(near, new HandClock(), { method, params: null }), (got) => {
      assert.ok(isSpaceError(got, "internal/bug"));
      assert.deepEqual(got.details, { where: method });
      return true;
    });
  }
  assert.deepEqual([bugs.length, near.closed], [2, false]);
});

it("refuses a command that it does not know", async () => {
  const { near } = served({});
  await assert.rejects(
    callRpc(near, new HandClock(), { method: "toString", params: null }),
    code("link/protocol"),
  );
});

it("says that an answer was too large instead of breaking off", async () => {
  const { near } = served({ large: async () => "x".repeat(headLimitBytes) });
  await assert.rejects(
    callRpc(near, new HandClock(), { method: "large", params: null }),
    code("input/too-large"),
  );
});

it("gives up at the deadline, and the other side hears of it", async () => {
  const clock = new HandClock();
  let signal: AbortSignal | undefined;
  let answer: (value: unknown) => void = () => undefined;
  const { near, far, bugs } = served({
    wait: (_params, given) => {
      signal = given;
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
  });
  const outcome = assert.rejects(
    callRpc(near, clock, { method: "wait", params: null, deadlineMs: 70 }),
    (error) => {
      assert.ok(isSpaceError(error, "deadline/passed"));
      assert.deepEqual(error.details, { what: "wait", limitMs: 70 });
      return true;
    },
  );
  await settled();
  assert.deepEqual([clock.waits, signal?.aborted], [[70], false]);
  clock.ring();
  await outcome;
  await settled();
  answer("too late");
  await settled();
  assert.deepEqual([signal?.aborted, near.size, far.size, bugs], [true, 0, 0, []]);
});

it("waits no longer than its default", () => {
  const clock = new HandClock();
  const { near } = served({ wait: () => new Promise(() => undefined) });
  callRpc(near, clock, { method: "wait", params: null }).catch(() => undefined);
  assert.deepEqual(clock.waits, [defaultRpcDeadlineMs]);
});

it("a link that ends while it waits, or has ended, is closed", async () => {
  const clock = new HandClock();
  const { near } = served({ wait: () => new Promise(() => undefined) });
  const waiting = assert.rejects(callRpc(near, clock, { method: "wait", params: null }), code("link/closed"));
  await settled();
  near.destroy(undefined);
  await waiting;
  await assert.rejects(callRpc(near, clock, { method: "wait", params: null }), code("link/closed"));
  assert.deepEqual(clock.waits, []);
});

it("ends a command whose caller sends more than its head", async () => {
  let signal: AbortSignal | undefined;
  const { far, open } = served({
    wait: (_params, given) => {
      signal = given;
      return new Promise(() => undefined);
    },
  });
  const caller = open(encodeJson({ rpc: "wait" }));
  caller.stream.send(Buffer.from("more"));
  await settled();
  assert.deepEqual([caller.told, far.size, signal?.aborted], [["reset unexpected"], 0, true]);
});

for (const [what, answer] of Object.entries({
  "is no JSON": "{",
  "has neither result nor error": "{}",
  "is no object": "1",
  "has an error of no known code": '{"error":{"code":"x/y","details":{}}}',
  "has an error without details": '{"error":{"code":"link/closed","details":null}}',
  "has an error of no form": '{"error":1}',
  "has a bad bigint": '{"ok":{"$bigint":1}}',
})) {
  it(`refuses an answer that ${what}`, async () => {
    const { link, send } = rawPeer();
    const refused = assert.rejects(
      callRpc(link, new HandClock(), { method: "a", params: null }),
      code("link/protocol"),
    );
    await settled();
    send([frameType.headEnd, 2, answer]);
    await refused;
    assert.deepEqual([link.size, link.closed], [0, false]);
  });
}

it("refuses an answer without a head, and one with data", async () => {
  const { link, send } = rawPeer();
  const call = (): Promise<void> =>
    assert.rejects(callRpc(link, new HandClock(), { method: "a", params: null }), code("link/protocol"));
  const outcomes = [call(), call()];
  await settled();
  send([frameType.end, 2], [frameType.head, 4, '{"ok":1}'], [frameType.data, 4, "x"]);
  await Promise.all(outcomes);
  assert.equal(link.size, 0);
});

it("carries errors by code and details alone", () => {
  const error = new SpaceError("key/missing", {}, { cause: new Error("inside") });
  assert.deepEqual(encodeError(error, "here"), { code: "key/missing", details: {} });
  assert.deepEqual(encodeError(new TypeError("x"), "here"), {
    code: "internal/bug",
    details: { where: "here" },
  });
  assert.equal(decodeError(encodeError(error, "here")).code, "key/missing");
});
