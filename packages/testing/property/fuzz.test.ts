// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { readCorpus } from "../src/fuzz/corpus.ts";
import { type FuzzOptions, fuzz } from "../src/fuzz/fuzz.ts";
import { type FuzzTarget, fuzzTargets } from "../src/fuzz/targets.ts";

const options = (inputs: number, seed = 1): FuzzOptions => ({
  seed,
  goesOn: (done) => done < inputs,
  monotonicMs: () => performance.now(),
  heapBytes: () => process.memoryUsage().heapUsed,
});

for (const [name, make] of Object.entries(fuzzTargets)) {
  it(`R-6: whatever bytes come, ${name} answers or refuses, in bounded time and memory`, () => {
    const target = make();
    const corpus = readCorpus(name);
    const report = fuzz({ ...target, seeds: [...target.seeds, ...corpus] }, options(corpus.length + 2_500));
    assert.equal(report.failure, null, JSON.stringify(report.failure));
    assert.ok(Object.keys(report.outcomes).length >= 2, JSON.stringify(report.outcomes));
  });
}

it("R-6: mutations get as far as every answer of the verifier", () => {
  const { outcomes } = fuzz(fuzzTargets["capability"]?.() ?? assert.fail(), options(2_500));
  for (const outcome of ["verified control", "verified service-port", "form", "key", "signature"]) {
    assert.ok(
      (outcomes[outcome] ?? 0) >= (outcome.endsWith("port") ? 1 : 20),
      `${outcome} came ${outcomes[outcome]} times`,
    );
  }
});

it("the corpus has inputs, and each gives an answer", () => {
  const corpus = readCorpus("capability");
  assert.ok(corpus.length > 0);
  const target = fuzzTargets["capability"]?.() ?? assert.fail();
  for (const input of corpus)
    assert.ok(
      ["form", "key", "signature"].includes(target.run(input)) || target.run(input).startsWith("verified"),
    );
});

/** What the planted fault fails on: no seed has it, and a lost segment makes it. */
const planted = "..";

/** A parser that fails on what the real one never fails on. */
function broken(): FuzzTarget {
  const target = fuzzTargets["capability"]?.() ?? assert.fail();
  return {
    ...target,
    run: (input) => {
      if (input.includes(planted)) throw new RangeError("planted");
      return target.run(input);
    },
  };
}

it("finds a planted fault, again by its seed, and makes its input short", () => {
  const unfound = { ...broken(), seeds: broken().seeds.filter((seed) => !seed.includes(planted)) };
  const first = fuzz(unfound, options(20_000, 7));
  const again = fuzz(unfound, options(20_000, 7));
  assert.equal(first.failure?.problem, "RangeError: planted");
  assert.equal(first.failure.minimised.toString(), planted);
  assert.equal(again.inputs, first.inputs);
  assert.ok(again.failure?.input.equals(first.failure.input));
});

it("takes a parser that is slow, or that keeps memory, for one that fails", () => {
  let nowMs = 0;
  const slow = fuzz(broken(), { ...options(10), monotonicMs: () => (nowMs += 3_000) });
  assert.equal(slow.failure?.problem, "took 3000 ms");
  let heap = 0;
  const target = {
    ...broken(),
    seeds: [Buffer.from("x")],
    run: () => "form",
    mutate: (input: Buffer) => input,
  };
  const leaking = fuzz(target, { ...options(20_000), heapBytes: () => (heap += 600 * 1024 * 1024) });
  assert.equal(leaking.failure?.problem, "keeps memory");
});
