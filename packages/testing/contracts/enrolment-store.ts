// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { newWorkerId, type StoreSuccession } from "@space/model";
import { SeededRandom } from "../src/seeded-random.ts";
import type { OpenedStore } from "./sandbox-store.ts";

const random = new SeededRandom("enrolment store");
const step = (held: string | null, next: string): StoreSuccession => ({ held, next });

export function enrolmentStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  const subject = async (context: TestContext): Promise<OpenedStore> => {
    const store = await open();
    context.after(() => store.dispose());
    return store;
  };

  describe(`${name}: enrolments`, () => {
    test("a worker's store goes from token to token, also over a restart of the control plane", async (context) => {
      const store = await subject(context);
      const workerId = newWorkerId(random);
      assert.deepEqual(await store.enrolments.enrolled(), []);
      assert.equal(await store.enrolments.succeed(workerId, step(null, "a"), 1), true);
      assert.equal(await store.enrolments.succeed(workerId, step("a", "b"), 2), true);
      const reopened = await store.reopen();
      context.after(() => reopened.dispose());
      assert.equal(await reopened.enrolments.succeed(workerId, step("b", "c"), 3), true);
      assert.deepEqual(await reopened.enrolments.enrolled(), [workerId]);
    });

    test("a step whose answer was lost is taken again, the first one too", async (context) => {
      const { enrolments } = await subject(context);
      const workerId = newWorkerId(random);
      for (const again of [
        step(null, "a"),
        step(null, "a"),
        step("a", "b"),
        step("a", "b"),
        step("b", "c"),
      ]) {
        assert.equal(await enrolments.succeed(workerId, again, 1), true, JSON.stringify(again));
      }
    });

    test("an older store, a copy, and an empty one under a known name are refused, however often they try", async (context) => {
      const { enrolments } = await subject(context);
      const workerId = newWorkerId(random);
      for (const next of [step(null, "a"), step("a", "b"), step("b", "c")])
        await enrolments.succeed(workerId, next, 1);
      for (const refused of [
        step("a", "b"),
        step("b", "x"),
        step("a", "c"),
        step(null, "c"),
        step(null, "x"),
        step("x", "c"),
        step("x", "y"),
      ]) {
        for (let round = 0; round < 2; round += 1)
          assert.equal(await enrolments.succeed(workerId, refused, 2), false, JSON.stringify(refused));
      }
      assert.equal(await enrolments.succeed(workerId, step("c", "d"), 3), true, "and the true one goes on");
      assert.equal(await enrolments.succeed(newWorkerId(random), step("d", "e"), 3), false, "not another's");
    });
  });
}
