// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { type LeasePorts, Leases } from "@space/control-plane/leases";
import { leaseMarginMs, newWorkerId } from "@space/model";
import { memoryControlStore } from "../src/memory-control-store.ts";
import { MemoryControlTables } from "../src/memory-control-tables.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { VirtualClock } from "../src/virtual-clock.ts";

const leaseMs = 60_000;
const workerId = newWorkerId(new SeededRandom("leases of replicas"));
const request = { nonce: "nonce", records: "records" } as Parameters<Leases["renew"]>[1]; // cast: nothing here reads it

/** One replica on the common store; `settled` holds its renewals back. */
function replica(
  tables: MemoryControlTables,
  clock: VirtualClock,
  settled: () => Promise<boolean> = async () => true,
): Promise<Leases> {
  const { receivers } = memoryControlStore(tables, clock);
  return Leases.open({
    receivers,
    sandboxes: { load: async () => new Map() },
    feeds: {
      settled,
      acknowledged: () => ({ position: 0, bundleVersion: 0 }),
      tell: async () => undefined,
    },
    signer: { lease: () => "grant" },
    clock,
    audit: { record: () => undefined },
    limits: { leaseMs, leaseWaitMs: 10 * leaseMs, leaseRetryMs: 1 },
  } as unknown as LeasePorts); // cast: all that leases use
}

test("R-4, R-16: a replica that stood still in a renewal counts the lease that another has granted meanwhile", async () => {
  const tables = new MemoryControlTables();
  const clock = new VirtualClock();
  const goOn = Promise.withResolvers<boolean>();
  const stood = await replica(tables, clock, () => goOn.promise);
  const other = await replica(tables, clock);
  const late = stood.renew(workerId, request, () => 0);
  await clock.advance(50_000);
  assert.deepEqual(await other.renew(workerId, request, () => 0), { kind: "granted" });
  await clock.advance(10_000);
  goOn.resolve(true); // its own grant takes the place of the other's in the store
  assert.deepEqual(await late, { kind: "granted" });
  await stood.refresh();
  // The other's lease began 10 s ago: the worker may act on it for 50 s yet.
  await clock.advance(49_000 + leaseMarginMs);
  assert.equal(stood.isOver(workerId), false);
  await clock.advance(11_000);
  assert.equal(stood.isOver(workerId), true);
});
