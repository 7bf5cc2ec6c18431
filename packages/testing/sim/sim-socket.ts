// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import type { Incarnation } from "./event-loop.ts";

type Listener = (bytes?: Buffer) => void;

/** What takes a socket's bytes, and its end. */
export interface SocketCarrier {
  send(from: SimSocket, bytes: Buffer): void;
  sendEnd(from: SimSocket): void;
}

/** Watches one direction of a link: what leaves, and what arrives. */
export interface Tap {
  sent(bytes: Buffer): void;
  arrived(bytes: Buffer): void;
}

/** What one host sends to another, over whatever connection: whether it comes in the order in which it was sent. */
export interface Lane {
  sent: number;
  /** The newest that has arrived. */
  arrived: number;
}

/** One end of a connection of the virtual network, with the part of a `Duplex` that a frame link uses. */
export class SimSocket {
  readonly network: SocketCarrier;
  readonly host: string;
  readonly owner: Incarnation;
  readonly tap: Tap | undefined;
  readonly lane: Lane;
  readonly writableLength = 0;
  readonly writableNeedDrain = false;
  destroyed = false;
  peer: SimSocket | undefined;
  /** Whether its other end is on the same host. */
  readonly isLocal: boolean;
  /** When the last thing that was sent arrives: nothing overtakes it. */
  lastArrivalMs = 0;
  /** What waits for the end of a partition. */
  readonly held: (() => void)[] = [];
  /** Its host has lost its power: it says nothing any more, not even that it is gone. */
  silent = false;
  #corked: Buffer[] | undefined;
  readonly #listeners = new Map<string, Listener[]>();

  constructor(ports: {
    readonly network: SocketCarrier;
    readonly host: string;
    readonly owner: Incarnation;
    readonly tap: Tap | undefined;
    readonly lane: Lane;
    readonly isLocal: boolean;
  }) {
    this.network = ports.network;
    this.host = ports.host;
    this.owner = ports.owner;
    this.tap = ports.tap;
    this.lane = ports.lane;
    this.isLocal = ports.isLocal;
  }

  /** As the parts know it. */
  asDuplex(): Duplex {
    return this as unknown as Duplex; // cast: the part of it that frame links use
  }

  on(event: string, listener: Listener): this {
    const listeners = this.#listeners.get(event);
    if (listeners === undefined) this.#listeners.set(event, [listener]);
    else listeners.push(listener);
    return this;
  }

  once(event: string, listener: Listener): this {
    return this.on(event, listener);
  }

  cork(): void {
    this.#corked ??= [];
  }

  uncork(): void {
    const corked = this.#corked ?? [];
    this.#corked = undefined;
    const [first] = corked;
    if (first !== undefined) this.#send(corked.length === 1 ? first : Buffer.concat(corked));
  }

  write(bytes: Buffer): boolean {
    if (this.#corked === undefined) this.#send(bytes);
    else this.#corked.push(bytes);
    return true;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.network.sendEnd(this);
  }

  /** The other end, or the network, has ended it. */
  close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }

  emit(event: string, bytes?: Buffer): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(bytes);
  }

  #send(bytes: Buffer): void {
    if (!this.destroyed && this.owner.alive) this.network.send(this, bytes);
  }
}
