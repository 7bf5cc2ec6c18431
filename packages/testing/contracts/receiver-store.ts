// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newWorkerId, type ReceiverRecord } from "@space/model";
import { SeededRandom } from "../src/seeded-random.ts";
import type { OpenedStore } from "./sandbox-store.ts";

const random = new SeededRandom("receiver store");

/** The contract of `ReceiverStore`. */
export function receiverStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  const opened = async (context: { after(fn: () => Promise<void>): void }): Promise<OpenedStore> => {
    const store = await open();
    context.after(() => store.dispose());
    return store;
  };
  const byId = (records: readonly ReceiverRecord[]): Map<string, ReceiverRecord> =>
    new Map(records.map((record) => [record.workerId, record]));

  describe(`${name}: receivers`, () => {
    test("R-12: what a receiver has acknowledged is kept, and only grows", async (context) => {
      const store = await opened(context);
      const [one, other] = [newWorkerId(random), newWorkerId(random)];
      assert.deepEqual(await store.receivers.receivers(), []);
      await store.receivers.acknowledgeOrder(one, 7);
      await store.receivers.acknowledgeOrder(one, 5);
      await store.receivers.acknowledgeBundle(one, 3);
      await store.receivers.acknowledgeBundle(one, 2);
      await store.receivers.acknowledgeBundle(other, 9);
      const again = await store.reopen();
      const found = byId(await again.receivers.receivers());
      assert.deepEqual(found.get(one), { workerId: one, position: 7, bundleVersion: 3, lease: null });
      assert.deepEqual(found.get(other), { workerId: other, position: 0, bundleVersion: 9, lease: null });
    });

    test("R-16: of two leases the one that ends later is kept, so that a shorter term takes nothing back", async (context) => {
      const store = await opened(context);
      const one = newWorkerId(random);
      const leaseOf = async (): Promise<ReceiverRecord["lease"] | undefined> =>
        byId(await store.receivers.receivers()).get(one)?.lease;
      await store.receivers.recordLease(one, { grantedAtMs: 1000, termMs: 60_000 });
      assert.deepEqual(await leaseOf(), { grantedAtMs: 1000, termMs: 60_000 });
      const kept = await store.receivers.recordLease(one, { grantedAtMs: 2000, termMs: 15_000 });
      assert.deepEqual(
        kept,
        { grantedAtMs: 1001, termMs: 60_000 },
        "and everyone sees that there was another",
      );
      assert.deepEqual(await leaseOf(), kept);
      await store.receivers.recordLease(one, { grantedAtMs: 50_000, termMs: 15_000 });
      assert.deepEqual(await leaseOf(), { grantedAtMs: 50_000, termMs: 15_000 });
      await store.receivers.acknowledgeOrder(one, 4);
      assert.deepEqual(byId(await store.receivers.receivers()).get(one)?.position, 4);
    });
  });
}
