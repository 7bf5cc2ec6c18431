// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import type { Fetch, FetchLane } from "./fetch-lane.ts";
import type { GuestConnection } from "./guest-connection.ts";
import { GuestConnectionError } from "./guest-error.ts";
import type { GuestPool } from "./guest-pool.ts";

/** A file that takes longer than this to answer (a hung mount) no longer holds up those behind it. */
const stuckAfterMs = 100;
/** Stuck files that others are let past: each keeps a connection. */
const stuckLimit = 8;
/** Files that may be awaited at once. */
const waitingLimit = 512;

interface Lane {
  readonly connection: GuestConnection;
  readonly fetches: FetchLane;
}

/** Reads small files of one guest, all over one connection of its pool's, which it keeps until it is trimmed. */
export class SmallFiles {
  readonly #pool: GuestPool;
  readonly #clock: Clock;
  #lane: Lane | undefined;
  /** Asked for before there is a lane. */
  readonly #early: Fetch[] = [];
  #opening = false;
  /** Lanes that wait for the file that has held them up. */
  readonly #stuck = new Set<Lane>();
  #cancelWatch: (() => void) | undefined;
  #closed = false;

  constructor(pool: GuestPool, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  /** Asks for a file. Of what it is given, one function is called, later. */
  fetch(fetch: Fetch): void {
    const lane = this.#usable();
    if (this.#closed) fetch.failed(new GuestConnectionError("closed"));
    else if ((lane?.fetches.waiting ?? this.#early.length) >= waitingLimit)
      fetch.failed(new GuestConnectionError("exhausted"));
    else if (lane !== undefined) this.#ask(lane, fetch);
    else {
      this.#early.push(fetch);
      if (!this.#opening) void this.#open();
    }
  }

  /** Back-pressure: the answers of all wait. */
  pause(): void {
    this.#lane?.fetches.pause();
  }

  resume(): void {
    this.#lane?.fetches.resume();
  }

  /** Gives the connection back to the pool while nothing is asked for. */
  trim(): void {
    const lane = this.#lane;
    if (lane === undefined || lane.fetches.waiting > 0) return;
    this.#lane = undefined;
    this.#leave(lane);
  }

  close(): void {
    this.#closed = true;
    this.#cancelWatch?.();
    for (const { connection } of this.#stuck) connection.destroy();
    this.#lane?.connection.destroy();
    this.#failEarly(new GuestConnectionError("closed"));
  }

  #usable(): Lane | undefined {
    if (this.#lane?.connection.ended === true) this.#lane = undefined;
    return this.#lane;
  }

  #ask({ fetches }: Lane, fetch: Fetch): void {
    fetches.add(fetch);
    this.#watch();
  }

  async #open(): Promise<void> {
    this.#opening = true;
    try {
      const connection = await this.#pool.detach();
      if (this.#closed) connection.destroy();
      if (connection.ended) throw new GuestConnectionError("closed");
      const lane = { connection, fetches: connection.fetches() };
      const before = this.#lane;
      this.#lane = lane;
      if (before !== undefined) this.#overtake(before, lane);
      for (const fetch of this.#early.splice(0)) this.#ask(lane, fetch);
    } catch (error) {
      const cause = error instanceof Error ? error : new TypeError("not an error", { cause: error });
      this.#failEarly(cause);
    } finally {
      this.#opening = false;
    }
  }

  #failEarly(error: Error): void {
    for (const fetch of this.#early.splice(0)) fetch.failed(error);
  }

  /** Looks, as long as anything is awaited, whether anything has come. */
  #watch(): void {
    if (this.#cancelWatch !== undefined) return;
    const seen = this.#lane;
    const answered = seen?.fetches.answered;
    this.#cancelWatch = this.#clock.after(stuckAfterMs, () => {
      this.#cancelWatch = undefined;
      for (const lane of this.#stuck) if (lane.fetches.waiting === 0) this.#unstick(lane);
      const lane = this.#usable();
      const awaited = (lane?.fetches.waiting ?? 0) + this.#stuck.size;
      const isHeldUp = lane !== undefined && lane === seen && lane.fetches.answered === answered;
      if (isHeldUp && lane.fetches.waiting > 1 && !lane.fetches.paused) this.#letPast();
      if (awaited > 0) this.#watch();
    });
  }

  #letPast(): void {
    if (!this.#opening && this.#stuck.size < stuckLimit) void this.#open();
  }

  /** What waits behind the file that holds up `before` is asked for again: to read twice changes nothing. */
  #overtake(before: Lane, lane: Lane): void {
    for (const fetch of before.fetches.giveUpQueued()) this.#ask(lane, fetch);
    if (before.fetches.waiting === 0) this.#leave(before);
    else this.#stuck.add(before);
  }

  #unstick(lane: Lane): void {
    this.#stuck.delete(lane);
    this.#leave(lane);
  }

  #leave({ connection, fetches }: Lane): void {
    if (!connection.ended) fetches.release();
    this.#pool.readmit(connection);
  }
}
