// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Clock, parseSandboxId } from "@space/model";
import { Transitions, within } from "./transitions.ts";

const sandboxId = parseSandboxId(`i${"a".repeat(20)}`);

/** Fires its one timer by hand. */
function handClock(): Clock & { fire(): void; waiting(): boolean } {
  let timer: (() => void) | undefined;
  return {
    wallMs: () => 0,
    monotonicMs: () => 0,
    after: (_delayMs, callback) => {
      timer = callback;
      return () => {
        timer = undefined;
      };
    },
    fire: () => timer?.(),
    waiting: () => timer !== undefined,
  };
}

describe("transitions", () => {
  test("are seen while they run, with how they ended, and forgotten then", async () => {
    const transitions = new Transitions();
    const work = Promise.withResolvers<string>();
    const result = transitions.run(sandboxId, "pause", () => work.promise);
    const seen = transitions.current(sandboxId);
    assert.equal(seen?.kind, "pause");
    work.resolve("done");
    assert.equal(await result, "done");
    assert.deepEqual(await seen.end, { kind: "done" });
    await transitions.idle();
    assert.equal(transitions.current(sandboxId), undefined);
  });

  test("the end of an older one does not hide the newer one", async () => {
    const transitions = new Transitions();
    const older = Promise.withResolvers<void>();
    const newer = Promise.withResolvers<void>();
    const first = transitions.run(sandboxId, "resume", () => older.promise);
    void transitions.run(sandboxId, "kill", () => newer.promise);
    older.resolve();
    await first;
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(transitions.current(sandboxId)?.kind, "kill");
    newer.resolve();
    await transitions.idle();
  });

  test("a failure reaches who drives and who waits, and is nobody's unhandled rejection", async () => {
    const transitions = new Transitions();
    const error = new RangeError("no");
    const result = transitions.run(sandboxId, "create", () => Promise.reject(error));
    const end = transitions.current(sandboxId)?.end;
    await assert.rejects(result, error);
    assert.deepEqual(await end, { kind: "failed", error });
  });

  test("what was left half-way is told once", () => {
    const transitions = new Transitions();
    transitions.leave(sandboxId);
    transitions.leave(sandboxId);
    assert.deepEqual(transitions.takeLeft(), [sandboxId]);
    assert.deepEqual(transitions.takeLeft(), []);
  });
});

describe("waiting within a limit", () => {
  test("gives the value or the failure in time, and then has no timer", async () => {
    const clock = handClock();
    assert.equal(await within(clock, 5, Promise.resolve(7)), 7);
    await assert.rejects(within(clock, 5, Promise.reject(new RangeError("no"))), RangeError);
    assert.equal(clock.waiting(), false);
  });

  test("gives nothing when the limit comes first", async () => {
    const clock = handClock();
    const waiting = within(clock, 5, new Promise(() => undefined));
    clock.fire();
    assert.equal(await waiting, undefined);
  });
});
