// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import type { GuestConnection } from "./guest-connection.ts";
import { GuestConnectionError } from "./guest-error.ts";

/** A process that has just been started, and its answer, need the processor more than the next connection does. */
const refillPauseMs = 5;

export interface GuestPoolOptions {
  /** Opens one verified connection. */
  readonly open: () => Promise<GuestConnection>;
  readonly clock: Clock;
  /** Connections lent at once; a stuck operation occupies one. Default 16. */
  readonly maxConnections?: number;
  /** Verified connections kept ready, so that an operation or a spawn pays no handshake. Default 2. */
  readonly idleConnections?: number;
  /** Connections that are kept when they are given back, so that a busy guest pays no handshakes. Default: the same. */
  readonly keptConnections?: number;
  /** Operations that may wait for a connection; one more rejects with "exhausted". Default 256. */
  readonly maxWaiting?: number;
}

type Waiter = {
  readonly resolve: (connection: GuestConnection) => void;
  readonly reject: (error: Error) => void;
};

/** A bounded set of verified connections to one guest, for file operations, spawns and dials. */
export class GuestPool {
  readonly #open: () => Promise<GuestConnection>;
  readonly #maxConnections: number;
  readonly #idleConnections: number;
  readonly #keptConnections: number;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #idle: GuestConnection[] = [];
  readonly #waiting: Waiter[] = [];
  readonly #lent = new Set<GuestConnection>();
  readonly #disowned = new Set<GuestConnection>();
  #opening = 0;
  #refilling = 0;
  #closed = false;
  #cancelRefill: (() => void) | undefined;

  constructor(options: GuestPoolOptions) {
    this.#open = options.open;
    this.#maxConnections = options.maxConnections ?? 16;
    this.#idleConnections = options.idleConnections ?? 2;
    this.#keptConnections = Math.max(options.keptConnections ?? 0, this.#idleConnections);
    this.#maxWaiting = options.maxWaiting ?? 256;
    this.#clock = options.clock;
  }

  /** Opens connections until the idle set is full. Failures are left for the operation that meets them. */
  warm(): Promise<void> {
    return this.#refill();
  }

  /** Runs one operation on a connection of the pool. */
  async use<T>(operation: (connection: GuestConnection) => Promise<T>): Promise<T> {
    const connection = await this.take();
    try {
      return await operation(connection);
    } finally {
      this.give(connection);
    }
  }

  /** Lends a connection; return it with `give`. */
  take(): Promise<GuestConnection> {
    if (this.#closed) return Promise.reject(new GuestConnectionError("closed"));
    for (let ready = this.#idle.pop(); ready !== undefined; ready = this.#idle.pop()) {
      if (!ready.usable) continue;
      this.#lent.add(ready);
      return Promise.resolve(ready);
    }
    if (this.#lent.size + this.#opening < this.#maxConnections) return this.#openOne();
    if (this.#waiting.length >= this.#maxWaiting)
      return Promise.reject(new GuestConnectionError("exhausted"));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Takes a lent connection back. One that is busy, broken or taken over is not reused (broken and busy: closed). */
  give(connection: GuestConnection): void {
    if (this.#disowned.delete(connection)) connection.destroy();
    if (!this.#lent.delete(connection)) return;
    this.#keep(connection);
  }

  /**
   * A lent connection whose operation waits for somebody slow: it no longer counts, so that others need not wait for him
   * too. It is closed when it is given back. The caller bounds how many there are.
   */
  disown(connection: GuestConnection): void {
    if (!this.#lent.delete(connection)) return;
    this.#disowned.add(connection);
    this.#serveWaiting();
  }

  /**
   * A connection that leaves the pool, for `spawn` or `dial`: it no longer counts, and a new one is opened in the
   * background, a little later: whoever detached it goes first. The caller bounds how many it holds, and destroys it or
   * gives it back with `readmit`.
   */
  async detach(): Promise<GuestConnection> {
    for (let ready = this.#idle.pop(); ready !== undefined; ready = this.#idle.pop()) {
      if (!ready.usable) continue;
      this.#refillLater();
      return ready;
    }
    if (this.#closed) throw new GuestConnectionError("closed");
    const connection = await this.#open();
    this.#refillLater();
    return connection;
  }

  /** Takes in a detached connection, or one that was verified for another reason, if it can be used; else it is closed. */
  readmit(connection: GuestConnection): void {
    if (this.#lent.size + this.#opening < this.#maxConnections) this.#keep(connection);
    else connection.destroy();
  }

  /** Closes what is kept beyond the idle set: nothing has been asked of the guest for a while. */
  trim(): void {
    for (const connection of this.#idle.splice(this.#idleConnections)) connection.destroy();
  }

  /** Closes every connection, running operations included, and refuses new ones. */
  close(): void {
    this.#closed = true;
    this.#cancelRefill?.();
    for (const connection of [...this.#idle.splice(0), ...this.#lent, ...this.#disowned])
      connection.destroy();
    this.#lent.clear();
    this.#disowned.clear();
    for (const waiter of this.#waiting.splice(0)) waiter.reject(new GuestConnectionError("closed"));
  }

  #keep(connection: GuestConnection): void {
    if (this.#closed || !connection.usable) {
      connection.destroy();
      this.#serveWaiting();
      return;
    }
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) {
      this.#lent.add(connection);
      waiter.resolve(connection);
    } else if (this.#idle.length < this.#keptConnections) this.#idle.push(connection);
    else connection.destroy();
  }

  async #openOne(): Promise<GuestConnection> {
    this.#opening += 1;
    try {
      const connection = await this.#open();
      if (this.#closed) {
        connection.destroy();
        throw new GuestConnectionError("closed");
      }
      this.#lent.add(connection);
      return connection;
    } finally {
      this.#opening -= 1;
    }
  }

  #serveWaiting(): void {
    if (this.#closed || this.#lent.size + this.#opening >= this.#maxConnections) return;
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) this.#openOne().then(waiter.resolve, waiter.reject);
  }

  #refillLater(): void {
    this.#cancelRefill ??= this.#clock.after(refillPauseMs, () => {
      this.#cancelRefill = undefined;
      void this.#refill();
    });
  }

  async #refill(): Promise<void> {
    while (!this.#closed && this.#idle.length + this.#refilling < this.#idleConnections) {
      this.#refilling += 1;
      try {
        const connection = await this.#open();
        if (this.#closed || this.#idle.length >= this.#idleConnections) connection.destroy();
        else this.#idle.push(connection);
      } catch {
        return; // whoever needs the next connection meets the error itself
      } finally {
        this.#refilling -= 1;
      }
    }
  }
}
