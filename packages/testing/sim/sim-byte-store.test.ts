// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type Digest, isSpaceError, parseDigest } from "@space/model";
import { SealedObjects } from "../src/sealed-objects.ts";
import { EventLoop } from "./event-loop.ts";
import { FaultCounts } from "./faults.ts";
import { SimByteStore } from "./sim-byte-store.ts";
import { SimRandom } from "./sim-random.ts";

test("what is damaged is refused by whoever reads it, counted, and whole again in the end", async () => {
  const [loop, faults] = [new EventLoop(), new FaultCounts()];
  const store = new SimByteStore({ loop, faults, random: new SimRandom("objects") });
  const objects = new SealedObjects(store);
  const digests: Digest[] = [];
  for (let at = 0; at < 20; at += 1) {
    const bytes = Buffer.from(`object ${at}`);
    const digest = parseDigest(createHash("sha256").update(bytes).digest("hex"));
    await objects.put(digest, bytes);
    digests.push(digest);
  }
  const count = store.damage(1000);
  const codes: string[] = [];
  for (const digest of digests)
    await objects.get(digest).catch((error: unknown) => codes.push(isSpaceError(error) ? error.code : "bug"));
  assert.ok(count > 0);
  assert.equal(codes.length, count);
  assert.ok(
    codes.includes("snapshot/missing") && codes.some((code) => code.startsWith("chunk/")),
    String(codes),
  );
  assert.ok(faults.of("object-damage") >= count);
  loop.run(loop.nowMs + 1000, () => false);
  for (const digest of digests) await objects.get(digest);
});
