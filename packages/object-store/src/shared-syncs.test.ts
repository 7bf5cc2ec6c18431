// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedSyncs } from "./shared-syncs.ts";

function scene() {
  const begun: { readonly path: string; end(error?: Error): void }[] = [];
  const syncs = new SharedSyncs(
    (path) =>
      new Promise((resolve, reject) => {
        begun.push({ path, end: (error) => (error === undefined ? resolve() : reject(error)) });
      }),
  );
  return { syncs, begun };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("who asks while one is under way gets one that begins later, and all who wait share it", async () => {
  const { syncs, begun } = scene();
  const first = syncs.sync("a");
  let late = 0;
  const waiting = [1, 2, 3].map(() => syncs.sync("a").then(() => (late += 1)));
  begun[0]?.end();
  await first;
  await turn();
  assert.deepEqual([begun.length, late], [2, 0]);
  const later = syncs.sync("a"); // the second has begun already
  begun[1]?.end();
  await Promise.all(waiting);
  await turn();
  assert.equal(begun.length, 3);
  begun[2]?.end();
  await later;
  const again = syncs.sync("a");
  assert.equal(begun.length, 4);
  begun[3]?.end();
  await again;
});

test("paths do not wait for each other", async () => {
  const { syncs, begun } = scene();
  const both = [syncs.sync("a"), syncs.sync("b")];
  assert.deepEqual(
    begun.map(({ path }) => path),
    ["a", "b"],
  );
  for (const { end } of begun) end();
  await Promise.all(both);
});

test("a failure is told to those whose sync it was, and to nobody after", async () => {
  const { syncs, begun } = scene();
  const first = assert.rejects(syncs.sync("a"), /full/);
  const next = syncs.sync("a");
  begun[0]?.end(new Error("full"));
  await first;
  await turn();
  const second = assert.rejects(next, /worse/);
  begun[1]?.end(new Error("worse"));
  await second;
  const last = syncs.sync("a");
  begun[2]?.end();
  await last;
});
