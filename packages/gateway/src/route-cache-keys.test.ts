// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { Bench, entryOf, question } from "./route-cache.fixture.ts";

/** A text with the header of a capability by this key; nothing of it is verified at the gateway. */
function signedBy(letter: string): string {
  const header = `{"alg":"EdDSA","typ":"space-cap+jwt","kid":"${letter.repeat(43)}"}`;
  return `${Buffer.from(header).toString("base64url")}.e30.c2ln`;
}

test("R-10: a bundle that leaves a key out empties the entries that it signed, and no others", async () => {
  const bench = new Bench();
  await bench.fill(1, { capability: signedBy("a") }, "old");
  const kept = await bench.fill(1, { capability: signedBy("b") }, "new");
  bench.revoked.add("a".repeat(43));
  bench.cache.dropOutdated();
  assert.equal(bench.cache.size, 1);
  assert.equal(bench.usable("old"), undefined);
  assert.equal(bench.usable("new"), kept);
});

test("R-10: an answer that was signed before the revocation and comes after it is not kept", async () => {
  const bench = new Bench();
  const pending = bench.cache.lookUp(question());
  bench.revoked.add("a".repeat(43));
  bench.cache.dropOutdated();
  bench.asked[0]?.answer(bench.entry(1, { capability: signedBy("a") }));
  const late = entryOf(await pending);
  assert.deepEqual([bench.cache.isCurrent(late), bench.usable()], [false, undefined]);
  const again = await bench.fill(1, { capability: signedBy("a") });
  assert.deepEqual([again.kid, bench.cache.size], ["a".repeat(43), 0], "a control plane that is behind");
});

test("R-7: a new certificate empties every entry, and look-ups from then on are for it", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  const underWay = bench.cache.lookUp(question("slow"));
  bench.cache.usePresenter("renewed");
  assert.equal(bench.cache.size, 0);
  bench.asked[1]?.answer(bench.entry(1));
  const late = entryOf(await underWay);
  assert.deepEqual(
    [late.presenter, bench.cache.isCurrent(late), bench.cache.isCurrent(old)],
    ["mine", false, false],
  );
  assert.equal(bench.usable("slow"), undefined);
  const fresh = await bench.fill(1);
  assert.deepEqual([fresh.presenter, bench.asked[2]?.presenter], ["renewed", "renewed"]);
  assert.equal(bench.usable(), fresh);
});
