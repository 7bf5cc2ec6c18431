// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { parseWorkerId, type WorkerEndpoint } from "@space/model";
import { FrameLink } from "@space/wire";
import { HandClock } from "./hand-clock.test.ts";
import { createWorkerLinks, defaultWorkerLinkLimits, type WorkerLinks } from "./worker-links.ts";

const endpoint: WorkerEndpoint = {
  workerId: parseWorkerId(`wrk_${"a".repeat(16)}`),
  host: "10.0.0.1",
  port: 7,
};

class Bench {
  readonly clock = new HandClock();
  readonly opened: Duplex[] = [];
  readonly dials: {
    readonly endpoint: WorkerEndpoint;
    readonly signal: AbortSignal;
    open(): Duplex;
    fail(): void;
  }[] = [];
  readonly links: WorkerLinks = createWorkerLinks(defaultWorkerLinkLimits, {
    clock: this.clock,
    dial: (to, signal) =>
      new Promise((resolve, reject) => {
        const open = (): Duplex => {
          const [near, far] = duplexPair();
          this.opened.push(near);
          resolve(near);
          return far;
        };
        this.dials.push({ endpoint: to, signal, open, fail: () => reject(new Error("refused")) });
      }),
  });

  /** The worker's end of a connection that answers pings. */
  accept(number: number): FrameLink {
    return new FrameLink(this.dials[number]?.open() ?? assert.fail(), { dialled: false });
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
const unreachable = { code: "worker/unreachable" };

test("one link per worker is shared while it lives, and concurrent dials are one", async () => {
  const bench = new Bench();
  assert.equal(bench.links.current(endpoint), undefined);
  const pending = [bench.links.link(endpoint), bench.links.link({ ...endpoint })];
  const far = bench.accept(0);
  const [first, second] = await Promise.all(pending);
  assert.equal(first, second);
  assert.equal(bench.links.current(endpoint), first);
  assert.equal(await bench.links.link(endpoint), first);
  assert.equal(bench.dials.length, 1);
  far.destroy(undefined);
  await settled();
  assert.equal(bench.links.current(endpoint), undefined);
  const again = bench.links.link(endpoint);
  bench.accept(1);
  assert.notEqual(await again, first);
});

test("another address of the worker, or another worker at the address, is another link (incident 3)", async () => {
  const bench = new Bench();
  const pending = bench.links.link(endpoint);
  bench.accept(0);
  await pending;
  assert.equal(bench.links.current({ ...endpoint, port: 8 }), undefined);
  assert.equal(bench.links.current({ ...endpoint, host: "10.0.0.2" }), undefined);
  assert.equal(
    bench.links.current({ ...endpoint, workerId: parseWorkerId(`wrk_${"b".repeat(16)}`) }),
    undefined,
  );
});

test("a failed dial fails all who waited, and a storm of others at once (incident 35)", async () => {
  const bench = new Bench();
  const pending = [bench.links.link(endpoint), bench.links.link(endpoint)];
  const failed = Promise.all(pending.map((link) => assert.rejects(link, unreachable)));
  bench.dials[0]?.fail();
  await failed;
  for (let count = 0; count < 100; count += 1) await assert.rejects(bench.links.link(endpoint), unreachable);
  assert.equal(bench.dials.length, 1);
  bench.clock.advance(defaultWorkerLinkLimits.dialPauseMs);
  const again = bench.links.link(endpoint);
  bench.accept(1);
  await again;
});

test("a dial that takes too long is given up, and its socket thrown away when it comes", async () => {
  const bench = new Bench();
  const late = assert.rejects(bench.links.link(endpoint), unreachable);
  bench.clock.advance(defaultWorkerLinkLimits.dialWaitMs);
  await late;
  assert.equal(bench.dials[0]?.signal.aborted, true);
  bench.dials[0]?.open();
  await settled();
  assert.equal(bench.opened[0]?.destroyed, true);
  assert.equal(bench.links.current(endpoint), undefined);
});

test("a link that shows no sign of life is ended, one that does is kept", async () => {
  const bench = new Bench();
  const pending = bench.links.link(endpoint);
  const far = bench.accept(0);
  const link = await pending;
  const { pingEveryMs, pingWaitMs } = defaultWorkerLinkLimits;
  for (let count = 0; count < 5; count += 1) {
    bench.clock.advance(pingEveryMs);
    await link.ping(); // answered after the sign of life that was just asked for
    await settled();
  }
  assert.equal(link.closed, false);
  const silent = new HandClock();
  const dead = createWorkerLinks(defaultWorkerLinkLimits, {
    clock: silent,
    dial: () => Promise.resolve(duplexPair()[0]),
  });
  const unanswered = await dead.link(endpoint);
  silent.advance(pingEveryMs + pingWaitMs);
  assert.equal(unanswered.closed, true);
  assert.equal(dead.current(endpoint), undefined);
  far.destroy(undefined);
  await settled();
  assert.deepEqual([bench.clock.waiting, silent.waiting], [0, 0]);
});

test("closing ends every link, fails what is dialled, and refuses new ones", async () => {
  const bench = new Bench();
  const pending = bench.links.link(endpoint);
  bench.accept(0);
  const link = await pending;
  const dialling = assert.rejects(bench.links.link({ ...endpoint, port: 8 }), unreachable);
  bench.links.close();
  await dialling;
  assert.equal(link.closed, true);
  await assert.rejects(bench.links.link({ ...endpoint, port: 9 }), unreachable);
});

test("R-7: with a new certificate links are dialled anew; what is open on the old one goes on there until it ends", async () => {
  const bench = new Bench();
  const pending = bench.links.link(endpoint);
  const worker = new FrameLink(bench.dials[0]?.open() ?? assert.fail(), {
    dialled: false,
    onOpen: () => ({ onData() {}, onEnd() {}, onReset() {} }),
  });
  const old = await pending;
  const quiet = { onHead() {}, onData() {}, onEnd() {}, onReset() {}, onProceed() {} };
  const stream = old.open("{}", quiet, false);
  await settled();
  bench.links.renew();
  assert.equal(bench.links.current(endpoint), undefined);
  const again = bench.links.link(endpoint);
  bench.accept(1);
  assert.notEqual(await again, old);
  bench.clock.advance(5_000);
  assert.equal(old.closed, false, "a stream is still open on it");
  stream.reset("cancelled");
  bench.clock.advance(1_000);
  await settled();
  assert.deepEqual([old.closed, worker.closed], [true, true]);
  assert.equal(bench.links.current(endpoint), await again);
});

test("R-7: a connection that was being dialled with the old certificate is dialled once more", async () => {
  const bench = new Bench();
  const pending = bench.links.link(endpoint);
  bench.links.renew();
  const joined = bench.links.link(endpoint);
  bench.dials[0]?.open();
  await settled();
  assert.equal(bench.opened[0]?.destroyed, true);
  bench.accept(1);
  assert.equal(await pending, await joined);
  assert.equal(bench.dials.length, 2);
});

test("R-10: what was sent before is known to be received, also on links that are to end, or they have ended", async () => {
  const bench = new Bench();
  await bench.links.received();
  const pending = bench.links.link(endpoint);
  const worker = bench.accept(0);
  await pending;
  await bench.links.received();
  const other = bench.links.link({ ...endpoint, port: 9 });
  bench.dials[1]?.open(); // nobody reads there
  await other;
  let isReceived = false;
  void bench.links.received().then(() => (isReceived = true));
  await settled();
  assert.equal(isReceived, false);
  bench.links.close();
  await settled();
  assert.equal(isReceived, true);
  assert.equal(worker.closed, true);
});
