// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { freezeIdentity, parseSandboxId, type RouteEntry } from "@space/model";
import { Bench, entryOf, generationOf, identity, question, workerId } from "./route-cache.fixture.ts";

test("R-23: an entry is found by its whole key only, and cannot be changed", async () => {
  const bench = new Bench();
  const cached = await bench.fill(1);
  assert.equal(bench.usable(), cached);
  assert.equal(bench.usable("other"), undefined);
  assert.ok(Object.isFrozen(cached) && Object.isFrozen(cached.entry));
  assert.equal(bench.asked[0]?.presenter, "mine");
});

test("R-23: use never extends an entry, however busy it is (incident 27)", async () => {
  const bench = new Bench();
  const cached = await bench.fill(1);
  for (let second = 0; second < 60; second += 1) {
    assert.equal(bench.usable(), cached);
    bench.clock.advance(1000);
  }
  assert.equal(bench.usable(), undefined);
});

test("R-25: an authorisation ends 60 s after its check began, whatever the control plane grants", async () => {
  const bench = new Bench();
  const pending = bench.cache.lookUp(question());
  bench.clock.advance(20_000);
  bench.asked[0]?.answer(bench.entry(1, { authorisedForMs: 3_600_000 }));
  entryOf(await pending);
  bench.clock.advance(39_999);
  assert.notEqual(bench.usable(), undefined);
  bench.clock.advance(1);
  assert.equal(bench.usable(), undefined);
});

test("R-25: an authorisation that the control plane ends sooner ends sooner", async () => {
  const bench = new Bench();
  await bench.fill(1, { authorisedForMs: 5000 });
  bench.clock.advance(4999);
  assert.notEqual(bench.usable(), undefined);
  bench.clock.advance(1);
  assert.equal(bench.usable(), undefined);
});

test("a capability is not presented after its life, counted on the monotonic clock (incident 15)", async () => {
  const bench = new Bench();
  const nowMs = bench.clock.wallMs();
  await bench.fill(1, { capabilityIssuedAtMs: nowMs, capabilityExpiresAtMs: nowMs + 30_000 });
  bench.clock.wallAheadMs -= 3_600_000; // the host's clock is set back an hour
  bench.clock.advance(29_999);
  assert.notEqual(bench.usable(), undefined);
  bench.clock.advance(1);
  assert.equal(bench.usable(), undefined);
});

test("R-25: an entry in use is looked up anew in the background before it ends, once at a time", async () => {
  const bench = new Bench();
  const first = await bench.fill(1);
  bench.clock.advance(44_999);
  bench.usable();
  assert.equal(bench.asked.length, 1);
  bench.clock.advance(1);
  for (let count = 0; count < 10; count += 1) assert.equal(bench.usable(), first, "nobody waits for it");
  assert.equal(bench.asked.length, 2);
  bench.asked[1]?.answer(bench.entry(1));
  await bench.cache.lookUp(question());
  const second = bench.usable();
  assert.notEqual(second, first);
  assert.equal(second?.usableUntilMs, bench.clock.nowMs + 60_000);
});

test("an idle entry is never looked up anew, and the sweep lets go of it", async () => {
  const bench = new Bench();
  await bench.fill(1);
  bench.clock.advance(60_000);
  assert.equal(bench.asked.length, 1);
  bench.cache.sweep(bench.clock.nowMs);
  assert.equal(bench.cache.size, 0);
});

test("an outage of the control plane leaves an entry its time and adds none (incident 26)", async () => {
  const bench = new Bench();
  const cached = await bench.fill(1);
  bench.clock.advance(45_000);
  bench.usable();
  bench.asked[1]?.fail();
  await bench.cache.lookUp(question());
  assert.equal(bench.usable(), cached);
  assert.equal(bench.asked.length, 2, "not asked at every use");
  bench.clock.advance(1000);
  bench.usable();
  assert.equal(bench.asked.length, 3);
  bench.clock.advance(14_000);
  assert.equal(bench.usable(), undefined);
});

test("R-25: a background check that finds the caller revoked ends the entry at once", async () => {
  const bench = new Bench();
  await bench.fill(1);
  bench.clock.advance(45_000);
  bench.usable();
  bench.asked[1]?.answer({ kind: "unauthenticated", problem: "wrong" });
  await bench.cache.lookUp(question());
  assert.equal(bench.usable(), undefined);
});

test("concurrent first requests share one look-up", async () => {
  const bench = new Bench();
  const pending = Array.from({ length: 50 }, () => bench.cache.lookUp(question()));
  assert.equal(bench.asked.length, 1);
  bench.asked[0]?.answer(bench.entry(1));
  assert.equal(new Set((await Promise.all(pending)).map(entryOf)).size, 1);
});

test("who joins a look-up that finds nothing running asks once more: it may run since, and its caller may know that", async () => {
  const bench = new Bench();
  const first = bench.cache.lookUp(question());
  const joined = [bench.cache.lookUp(question()), bench.cache.lookUp(question())];
  bench.asked[0]?.answer({ kind: "not-running" });
  assert.equal((await first).kind, "not-running");
  await nextTurn();
  assert.equal(bench.asked.length, 2, "one more, for all of them");
  bench.asked[1]?.answer(bench.entry(2));
  assert.deepEqual((await Promise.all(joined)).map(generationOf), [2n, 2n]);
});

test("a look-up that is joined and finds nothing twice says so", async () => {
  const bench = new Bench();
  const first = bench.cache.lookUp(question());
  const joined = bench.cache.lookUp(question());
  bench.asked[0]?.answer({ kind: "not-found" });
  await first;
  await nextTurn();
  bench.asked[1]?.answer({ kind: "not-found" });
  assert.deepEqual([(await joined).kind, bench.asked.length], ["not-found", 2]);
});

test("one wake serves all who ask meanwhile, and a plain look-up before it wakes nothing", async () => {
  const bench = new Bench();
  const plain = bench.cache.lookUp(question());
  const wakes = Array.from({ length: 50 }, () => bench.cache.wake(question()));
  assert.deepEqual(
    bench.asked.map((asked) => asked.wakes),
    [false, true],
  );
  bench.asked[0]?.answer({ kind: "not-running", wakeable: true });
  assert.deepEqual(await plain, { kind: "not-running", wakeable: true });
  bench.asked[1]?.answer(bench.entry(2));
  assert.deepEqual(new Set((await Promise.all(wakes)).map(generationOf)), new Set([2n]));
  assert.equal(bench.usable()?.entry.route.identity.generation, 2n, "and what it found is kept");
});

test("refusals are not remembered", async () => {
  const bench = new Bench();
  for (const kind of ["not-found", "not-running"] as const) {
    const pending = bench.cache.lookUp(question());
    bench.asked.at(-1)?.answer({ kind });
    assert.equal((await pending).kind, kind);
    assert.equal(bench.usable(), undefined);
  }
  assert.equal(bench.asked.length, 2);
});

test("an answer for another sandbox or another access is never used", async () => {
  const bench = new Bench();
  const other = freezeIdentity({ ...identity(1), sandboxId: parseSandboxId(`i${"z".repeat(20)}`) });
  const wrong: Partial<RouteEntry>[] = [
    { route: { identity: other, endpoint: { workerId, host: "h", port: 1 } } },
    { access: { purpose: "control", scopes: ["metrics"] } },
    { access: { purpose: "service-port", port: 1, protocol: "http" } },
  ];
  for (const more of wrong) {
    const pending = bench.cache.lookUp(question());
    bench.asked.at(-1)?.answer(bench.entry(1, more));
    assert.equal((await pending).kind, "unavailable");
    assert.equal(bench.usable(), undefined);
  }
});

test("R-24: a repair replaces the rejected route", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  const pending = bench.cache.repair(question(), old);
  assert.equal(bench.usable(), undefined, "nobody else is sent to the rejected route meanwhile");
  bench.asked[1]?.answer(bench.entry(2));
  assert.equal(generationOf(await pending), 2n);
  assert.equal(bench.usable()?.entry.route.identity.generation, 2n);
  assert.deepEqual(bench.audited, ["route/repaired"]);
});

test("R-24: a late rejection of an old route does not displace the newer entry, nor ask again", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  const first = bench.cache.repair(question(), old);
  bench.asked[1]?.answer(bench.entry(2));
  const repaired = entryOf(await first);
  assert.equal(entryOf(await bench.cache.repair(question(), old)), repaired);
  assert.equal(bench.usable(), repaired);
  assert.equal(bench.asked.length, 2);
});

test("R-24: 200 rejections of one route share one look-up, and so do requests that come meanwhile", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  const pending = Array.from({ length: 200 }, () => bench.cache.repair(question(), old));
  assert.equal(bench.usable(), undefined);
  pending.push(bench.cache.lookUp(question()));
  bench.asked[1]?.answer(bench.entry(2));
  for (const outcome of await Promise.all(pending)) assert.equal(generationOf(outcome), 2n);
  assert.equal(bench.asked.length, 2);
});

test("R-24: a repair never joins a look-up that began before the rejection, nor does that one's answer count any more", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  bench.clock.advance(45_000);
  bench.usable(); // begins a background look-up
  const repair = bench.cache.repair(question(), old);
  assert.equal(bench.asked.length, 3);
  bench.asked[2]?.answer(bench.entry(2));
  assert.equal(generationOf(await repair), 2n);
  bench.asked[1]?.answer(bench.entry(1)); // what was true before the move
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(bench.usable()?.entry.route.identity.generation, 2n);
});

test("R-24: the same in the other order of answers", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  bench.clock.advance(45_000);
  bench.usable();
  const repair = bench.cache.repair(question(), old);
  bench.asked[1]?.answer(bench.entry(1));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(bench.usable(), undefined, "the rejected route is not back");
  bench.asked[2]?.answer(bench.entry(2));
  assert.equal(generationOf(await repair), 2n);
  assert.equal(bench.usable()?.entry.route.identity.generation, 2n);
});

test("R-24: callers share no capability: each key repairs its own entry", async () => {
  const bench = new Bench();
  const mine = await bench.fill(1, {}, "mine");
  const yours = await bench.fill(1, {}, "yours");
  const repairs = [bench.cache.repair(question("mine"), mine), bench.cache.repair(question("yours"), yours)];
  assert.equal(bench.asked.length, 4);
  bench.asked[2]?.answer(bench.entry(2));
  bench.asked[3]?.answer({ kind: "unauthenticated", problem: "wrong" });
  const kinds = (await Promise.all(repairs)).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["entry", "unauthenticated"]);
  assert.equal(bench.usable("yours"), undefined);
});

test("R-25: a repair does not extend the authorisation that it found", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  bench.clock.advance(30_000);
  const pending = bench.cache.repair(question(), old);
  bench.asked[1]?.answer(bench.entry(2));
  assert.equal(entryOf(await pending).authorisedUntilMs, old.authorisedUntilMs);
});

test("a repair that the control plane cannot answer leaves no rejected entry behind", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  const pending = bench.cache.repair(question(), old);
  bench.asked[1]?.fail();
  assert.equal((await pending).kind, "unavailable");
  assert.equal(bench.usable(), undefined);
  assert.equal(bench.cache.size, 0);
});

test("a removal removes only the entry that it means (incident 1)", async () => {
  const bench = new Bench();
  const old = await bench.fill(1);
  bench.clock.advance(60_000);
  bench.usable();
  const newer = await bench.fill(2);
  bench.cache.removeIfStill(question(), old);
  assert.equal(bench.usable(), newer);
  bench.cache.removeIfStill(question(), newer);
  assert.equal(bench.usable(), undefined);
});

test("the cache is bounded, and keeps what is used", async () => {
  const bench = new Bench({ cacheEntries: 10 });
  const kept = await bench.fill(1, {}, "busy");
  for (let at = 0; at < 100; at += 1) {
    await bench.fill(1, {}, `one-off ${at}`);
    assert.equal(bench.usable("busy"), kept);
  }
  assert.equal(bench.cache.size, 10);
});

test("look-ups under way are bounded, and each ends in time", async () => {
  const bench = new Bench({ lookups: 2 });
  const first = bench.cache.lookUp(question("a"));
  const second = bench.cache.lookUp(question("b"));
  assert.equal((await bench.cache.lookUp(question("c"))).kind, "unavailable");
  assert.equal(bench.asked.length, 2);
  bench.clock.advance(30_000);
  assert.deepEqual([(await first).kind, (await second).kind], ["unavailable", "unavailable"]);
  bench.asked[0]?.answer(bench.entry(1)); // too late to count
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(bench.usable("a"), undefined);
  assert.equal(bench.clock.waiting, 0);
  assert.equal(bench.counts.resolves, 2);
});
