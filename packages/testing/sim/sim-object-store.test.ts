// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type Digest, isSpaceError, parseDigest } from "@space/model";
import { EventLoop } from "./event-loop.ts";
import { FaultCounts } from "./faults.ts";
import { SimObjectStore } from "./sim-object-store.ts";
import { SimRandom } from "./sim-random.ts";

test("what is damaged is refused by whoever reads it, counted, and whole again in the end", async () => {
  const [loop, faults] = [new EventLoop(), new FaultCounts()];
  const store = new SimObjectStore({ loop, faults, random: new SimRandom("objects") });
  const digests: Digest[] = [];
  for (let at = 0; at < 20; at += 1) {
    const bytes = Buffer.from(`object ${at}`);
    const digest = parseDigest(createHash("sha256").update(bytes).digest("hex"));
    await store.put(digest, bytes);
    digests.push(digest);
  }
  const count = store.damage(1000);
  const codes: string[] = [];
  for (const digest of digests)
    await store.get(digest).catch((error: unknown) => codes.push(isSpaceError(error) ? error.code : "bug"));
  assert.ok(count > 0);
  assert.equal(codes.length, count);
  assert.deepEqual([...new Set(codes)].toSorted(), ["snapshot/missing", "snapshot/refused"]);
  assert.equal(faults.of("object-damage"), count);
  loop.run(loop.nowMs + 1000, () => false);
  for (const digest of digests) await store.get(digest);
});
