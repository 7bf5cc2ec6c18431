// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { RetainedBytes, type SharedMemory } from "./retained-bytes.ts";

class Purse implements SharedMemory {
  usedBytes = 0;
  readonly limitBytes: number;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get exhausted(): boolean {
    return this.usedBytes >= this.limitBytes;
  }

  tryTake(bytes: number): boolean {
    if (this.usedBytes + bytes > this.limitBytes) return false;
    this.usedBytes += bytes;
    return true;
  }

  overdraw(bytes: number): void {
    this.usedBytes += bytes;
  }

  give(bytes: number): void {
    this.usedBytes -= bytes;
  }
}

it("R-22: holds exactly what a plain copy of the sequence holds, at every offset, while it grows and turns round", () => {
  const purse = new Purse(Number.POSITIVE_INFINITY);
  const kept = new RetainedBytes(purse);
  let all = Buffer.alloc(0);
  let state = 7;
  const below = (limit: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % limit;
  };
  for (let round = 0; round < 2_000; round += 1) {
    const chunk = Buffer.alloc(below(500), round);
    all = Buffer.concat([all, chunk]);
    kept.append(chunk);
    kept.dropBefore(all.length - below(9_000));
    assert.equal(kept.end, all.length);
    const from = kept.start + below(kept.end - kept.start + 1);
    const max = below(5_000);
    assert.ok(kept.read(from, max).equals(all.subarray(from, from + max)));
  }
  assert.ok(purse.usedBytes <= 16 * 1024, `${purse.usedBytes} bytes for 9000`);
  kept.release();
  assert.deepEqual([purse.usedBytes, kept.start, kept.end], [0, all.length, all.length]);
});

it("takes no more than the shared memory has, keeps the newest, and never loses what is appended", () => {
  const purse = new Purse(2048);
  const kept = new RetainedBytes(purse);
  kept.append(Buffer.alloc(2000, 1));
  assert.equal(kept.makeRoom(1000), false);
  kept.squeeze(1000);
  kept.append(Buffer.alloc(1000, 2));
  assert.deepEqual([kept.start, kept.end, purse.usedBytes], [952, 3000, 2048]);
  assert.ok(kept.read(1990, 20).equals(Buffer.from([...Array(10).fill(1), ...Array(10).fill(2)])));
  kept.append(Buffer.alloc(100, 3));
  assert.deepEqual([kept.start, kept.end], [952, 3100], "what must be kept is, beyond the limit");
  assert.ok(purse.exhausted);
  kept.release();
  assert.equal(purse.usedBytes, 0);
});
