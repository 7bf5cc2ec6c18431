// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock, Random } from "@space/model";
import type { GuestPool } from "@space/spaced-guest";
import { EnvdError } from "./envd-error.ts";
import { FolderWatch, type WatchReader, type WatchTarget } from "./folder-watch.ts";

/** Watches of one sandbox, streamed and polled together. */
const watchLimit = 64;
/** Events that wait for a poller. */
const eventLimit = 10_000;
/** A watcher that nobody polls for this long is removed. */
const forgottenMs = 10 * 60_000;
const idBytes = 12;

interface PolledWatcher {
  readonly watch: FolderWatch;
  events: JsonObject[];
  /** Why the next poll fails, once. */
  fault: EnvdError | undefined;
  cancelForgetting: () => void;
}

/** The folders of one sandbox that are watched. */
export class FolderWatches {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #watches = new Set<FolderWatch>();
  readonly #polled = new Map<string, PolledWatcher>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  get size(): number {
    return this.#watches.size;
  }

  /** Begins to watch. Throws `resource_exhausted`; rejects with `GuestError`. `close` ends it. */
  async open(target: WatchTarget, reader: WatchReader, pool: GuestPool): Promise<FolderWatch> {
    if (this.#watches.size >= watchLimit) {
      throw new EnvdError("resource_exhausted", `the sandbox already watches ${watchLimit} directories`);
    }
    const watch = new FolderWatch(target, {
      ...(reader.subscriber && { subscriber: reader.subscriber }),
      onEvent: (event) => reader.onEvent(event),
      onOverflow: () => reader.onOverflow(),
      onGone: () => {
        this.#watches.delete(watch);
        reader.onGone();
      },
    });
    this.#watches.add(watch);
    try {
      await watch.open(pool);
      return watch;
    } catch (error) {
      this.#watches.delete(watch);
      throw error;
    }
  }

  close(watch: FolderWatch): void {
    this.#watches.delete(watch);
    watch.close();
  }

  /** Begins to watch for a poller; `encode` puts an event into the foreign protocol. Returns the watcher's id. */
  async create(
    target: WatchTarget,
    encode: (event: Parameters<WatchReader["onEvent"]>[0]) => JsonObject,
    pool: GuestPool,
  ): Promise<string> {
    const id = Buffer.from(this.#random.bytes(idBytes)).toString("hex");
    const early: JsonObject[] = [];
    const fail = (fault: EnvdError): void => {
      const watcher = this.#polled.get(id);
      if (watcher !== undefined) watcher.fault = fault;
    };
    const overflow = (): void =>
      fail(new EnvdError("resource_exhausted", "events were lost: they were not read in time"));
    const watch = await this.open(
      target,
      {
        onEvent: (event) => {
          const events = this.#polled.get(id)?.events ?? early;
          if (events.length < eventLimit) events.push(encode(event));
          else overflow();
        },
        onOverflow: overflow,
        onGone: () => fail(new EnvdError("not_found", "the directory cannot be watched any more")),
      },
      pool,
    );
    this.#polled.set(id, { watch, events: early, fault: undefined, cancelForgetting: this.#forgetLater(id) });
    return id;
  }

  /** What happened since the last time. Throws `not_found`, or, once, `resource_exhausted` when events were lost. */
  take(id: string): JsonObject[] {
    const watcher = this.#polled.get(id);
    if (watcher === undefined) throw new EnvdError("not_found", `watcher with id ${id} not found`);
    watcher.cancelForgetting();
    watcher.cancelForgetting = this.#forgetLater(id);
    const { events, fault } = watcher;
    watcher.events = [];
    const isGone = fault?.code === "not_found";
    if (isGone && events.length > 0) return events; // what came before its end comes first
    watcher.fault = undefined;
    if (isGone) this.remove(id);
    if (fault !== undefined) throw fault;
    return events;
  }

  /** Throws `not_found`. */
  remove(id: string): void {
    const watcher = this.#polled.get(id);
    if (watcher === undefined) throw new EnvdError("not_found", `watcher with id ${id} not found`);
    this.#polled.delete(id);
    watcher.cancelForgetting();
    this.close(watcher.watch);
  }

  list(): Iterable<FolderWatch> {
    return this.#watches;
  }

  expectRekey(): void {
    for (const watch of this.#watches) watch.expectRekey();
  }

  async renew(pool: GuestPool): Promise<void> {
    await Promise.all([...this.#watches].map((watch) => watch.renew(pool)));
  }

  /** Ends every watch. */
  clear(): void {
    for (const id of [...this.#polled.keys()]) this.remove(id);
    for (const watch of [...this.#watches]) this.close(watch);
  }

  #forgetLater(id: string): () => void {
    return this.#clock.after(forgottenMs, () => this.remove(id));
  }
}
