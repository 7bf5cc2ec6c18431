// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { type GuestConnection, GuestConnectionError, GuestPool } from "@space/spaced-guest";
import type { TestGuest } from "../src/guest-host.ts";
import { VirtualClock } from "../src/virtual-clock.ts";

/** The pool of connections, over real ones. */
export function poolCases(guest: () => TestGuest): void {
  it("R-20: opens the successor of a connection that has left its pool a little later, verified like each", async () => {
    const clock = new VirtualClock();
    const opened: Promise<GuestConnection>[] = [];
    const open = (): Promise<GuestConnection> => {
      const opening = guest().connect();
      opened.push(opening);
      return opening;
    };
    const pool = new GuestPool({ open, clock, idleConnections: 1 });
    await pool.warm();
    const left = [await pool.detach()];
    assert.equal(opened.length, 1);
    await clock.advance(5);
    assert.equal(opened.length, 2);
    await opened[1];
    left.push(await pool.detach());
    assert.equal(opened.length, 2);
    pool.close();
    await clock.advance(5);
    assert.equal(opened.length, 2);
    for (const connection of left) connection.destroy();
  });

  it("serves first by the connection that it was given, and closes one that it has no room for", async () => {
    let opened = 0;
    const open = (): Promise<GuestConnection> => {
      opened += 1;
      return guest().connect();
    };
    const pool = new GuestPool({ open, clock: new VirtualClock(), idleConnections: 1 });
    const [first, second] = [await guest().connect(), await guest().connect()];
    pool.readmit(first);
    pool.readmit(second);
    assert.deepEqual([first.usable, second.usable], [true, false]);
    await pool.warm();
    assert.equal(await pool.take(), first);
    assert.equal(opened, 0);
    pool.close();
    assert.equal(first.usable, false);
  });

  it("serves a pool in which a stuck operation holds only its own connection", async () => {
    const open = () => guest().connect();
    const pool = new GuestPool({ open, clock: new VirtualClock(), maxConnections: 2, maxWaiting: 1 });
    const stuck = await pool.take();
    const endless = stuck.readStream(
      "/dev/zero",
      {},
      { onEntry: () => undefined, onData: () => stuck.pause() },
    );
    endless.catch(() => undefined);
    const answers = await Promise.all([pool.use((c) => c.stat("/tmp")), pool.use((c) => c.stat("/etc"))]);
    assert.deepEqual(
      answers.map(({ path }) => path),
      ["/tmp", "/etc"],
    );
    const held = await pool.take();
    const waiting = pool.use((c) => c.stat("/usr"));
    await assert.rejects(
      pool.take(),
      (error) => error instanceof GuestConnectionError && error.fault === "exhausted",
    );
    pool.give(stuck);
    assert.equal((await waiting).path, "/usr");
    pool.give(held);
    await assert.rejects(endless);
    pool.close();
  });
}
