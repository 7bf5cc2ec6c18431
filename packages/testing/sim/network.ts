// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { EventLoop, Incarnation } from "./event-loop.ts";
import type { FaultCounts } from "./faults.ts";
import type { SimRandom } from "./sim-random.ts";
import { type Lane, SimSocket, type SocketCarrier, type Tap } from "./sim-socket.ts";

/** Above this a message counts as delayed. */
const delayedMs = 50;

/** How often what one process sends to another on its host is there before anything else happens. */
const atOnceChance = 0.8;

/** How bad the network is. */
export interface NetworkManners {
  /** Usual one-way delay. */
  readonly latencyMs: number;
  /** How often a message takes up to `slowMs` instead. */
  readonly slowChance: number;
  readonly slowMs: number;
  /** Of calls that are not on a link: how often the question, or the answer, is lost, and how often the question comes twice. */
  readonly lossChance: number;
  readonly duplicateChance: number;
}

export interface LinkEnd {
  readonly host: string;
  readonly owner: Incarnation;
  /** Watches what this end sends and what arrives here. */
  readonly tap?: Tap;
}

/** After a break, how often and how long one end does not know of it while what is on its way to it still arrives. */
const lingerChance = 0.5;
const lingerMs = 4000;

/**
 * Connections as TCP makes them: in order, until they break; then what was on its way is lost, or arrives late on the old
 * connection when there is a new one already, and each end learns of it in its own time. Connections overtake each other,
 * and calls do. Hosts can be cut off from each other; what is sent meanwhile waits for the end of that.
 */
export class Network implements SocketCarrier {
  readonly #loop: EventLoop;
  readonly #random: SimRandom;
  readonly #manners: NetworkManners;
  readonly #faults: FaultCounts;
  readonly #sockets = new Set<SimSocket>();
  readonly #apart = new Set<string>();
  readonly #lanes = new Map<string, Lane>();

  constructor(
    manners: NetworkManners,
    ports: { readonly loop: EventLoop; readonly random: SimRandom; readonly faults: FaultCounts },
  ) {
    this.#manners = manners;
    this.#loop = ports.loop;
    this.#random = ports.random;
    this.#faults = ports.faults;
  }

  /** A connection between two processes; the first is the one that dialled. */
  connect(near: LinkEnd, far: LinkEnd): readonly [SimSocket, SimSocket] {
    const toFar = this.#lane(near.host, far.host);
    const toNear = this.#lane(far.host, near.host);
    const isLocal = near.host === far.host;
    const a = new SimSocket({ network: this, ...near, tap: near.tap, lane: toFar, isLocal });
    const b = new SimSocket({ network: this, ...far, tap: far.tap, lane: toNear, isLocal });
    a.peer = b;
    b.peer = a;
    this.#sockets.add(a).add(b);
    return [a, b];
  }

  delayMs(): number {
    const { latencyMs, slowChance, slowMs } = this.#manners;
    const isSlow = slowChance > 0 && this.#random.chance(slowChance);
    const delayMs = isSlow
      ? this.#random.between(latencyMs, slowMs)
      : latencyMs * (0.5 + this.#random.fraction());
    if (delayMs > delayedMs) this.#faults.landed("delay");
    return delayMs;
  }

  areApart(a: string, b: string): boolean {
    return this.#apart.size > 0 && this.#apart.has(a < b ? `${a} ${b}` : `${b} ${a}`);
  }

  /** Cuts two hosts off from each other for a while. */
  partition(a: string, b: string, forMs: number): void {
    const pair = a < b ? `${a} ${b}` : `${b} ${a}`;
    if (a === b || this.#apart.has(pair)) return;
    this.#apart.add(pair);
    this.#loop.after(forMs, undefined, () => {
      this.#apart.delete(pair);
      for (const socket of this.#sockets) {
        if (socket.held.length === 0 || this.areApart(socket.host, socket.peer?.host ?? "")) continue;
        this.#faults.landed("partition", socket.held.length);
        for (const deliver of socket.held.splice(0)) this.#loop.after(0, undefined, deliver);
      }
    });
  }

  /** Ends every connection between two hosts; what is on its way is lost. */
  breakLinks(a: string, b: string): void {
    for (const socket of this.#sockets) {
      if (socket.host !== a || socket.peer?.host !== b) continue;
      this.#faults.landed("link-break");
      this.#forget(socket);
    }
  }

  /** What a process's end does to its connections: the kernel ends them; or the whole host is silent at once. */
  drop(owner: Incarnation, how: "process" | "host"): void {
    for (const socket of this.#sockets) {
      if (socket.owner !== owner) continue;
      if (how === "process") socket.destroy();
      else {
        socket.destroyed = true;
        socket.silent = true;
      }
    }
  }

  send(from: SimSocket, bytes: Buffer): void {
    from.tap?.sent(bytes);
    const { lane } = from;
    lane.sent += 1;
    const number = lane.sent;
    this.#deliver(from, (to) => {
      if (to.destroyed) {
        this.#faults.landed("loss");
        // A host that is up again, or a process that has closed, answers with a reset.
        if (!from.destroyed) this.#loop.after(this.delayMs(), from.owner, () => this.#closed(from));
        return;
      }
      this.#arrive(lane, number);
      this.#loop.turnOf(to.owner, () => {
        to.tap?.arrived(bytes);
        to.emit("data", bytes);
      });
    });
  }

  sendEnd(from: SimSocket): void {
    this.#deliver(from, (to) => {
      this.#sockets.delete(from);
      this.#loop.soon(to.owner, () => this.#closed(to));
    });
  }

  /** One call outside any link: lost, doubled, delayed and overtaken as the manners say. Rejects never; an answer may not come. */
  call(ends: { readonly from: LinkEnd; readonly to: LinkEnd }, ask: () => void): void {
    const { lossChance, duplicateChance } = this.#manners;
    const { from, to } = ends;
    const times = this.#random.chance(duplicateChance) ? 2 : 1;
    const lane = this.#lane(from.host, to.host);
    lane.sent += 1;
    const number = lane.sent;
    for (let time = 0; time < times; time += 1) {
      if (this.#random.chance(lossChance) || this.areApart(from.host, to.host)) {
        this.#faults.landed(this.areApart(from.host, to.host) ? "partition" : "loss");
        continue;
      }
      if (time === 1) this.#faults.landed("duplication");
      this.#loop.after(this.delayMs(), to.owner, () => {
        this.#arrive(lane, number);
        ask();
      });
    }
  }

  #lane(from: string, to: string): Lane {
    const name = `${from} ${to}`;
    const known = this.#lanes.get(name) ?? { sent: 0, arrived: 0 };
    this.#lanes.set(name, known);
    return known;
  }

  /** Each connection keeps its order: what was overtaken came over another one, or alone. */
  #arrive(lane: Lane, number: number): void {
    if (number < lane.arrived) this.#faults.landed("reordering");
    else lane.arrived = number;
  }

  #deliver(from: SimSocket, deliver: (to: SimSocket) => void): void {
    const { peer } = from;
    if (peer === undefined) return;
    const go = (): void => {
      const { nowMs } = this.#loop;
      const arrive = (): void => {
        if (from.peer === peer) deliver(peer);
        else this.#faults.landed("loss");
      };
      const isAtOnce = from.isLocal && from.lastArrivalMs <= nowMs && this.#random.chance(atOnceChance);
      if (isAtOnce) return this.#loop.soon(undefined, arrive);
      from.lastArrivalMs = Math.max(nowMs + this.delayMs(), from.lastArrivalMs);
      this.#loop.after(from.lastArrivalMs - nowMs, undefined, arrive);
    };
    if (from.held.length > 0 || this.areApart(from.host, peer.host)) from.held.push(go);
    else go();
  }

  #closed(socket: SimSocket): void {
    this.#sockets.delete(socket);
    socket.close();
  }

  /** One end learns of it now, the other when its own time has passed: what is on its way to that still arrives. */
  #linger(near: SimSocket, far: SimSocket): void {
    near.held.length = 0;
    far.held.length = 0;
    this.#loop.after(this.delayMs(), near.owner, () => near.close());
    this.#loop.after(this.#random.between(0, lingerMs), far.owner, () => {
      this.#sockets.delete(near);
      this.#closed(far);
    });
  }

  #forget(socket: SimSocket): void {
    const { peer } = socket;
    if (peer !== undefined && this.#random.chance(lingerChance))
      return this.#random.chance(0.5) ? this.#linger(socket, peer) : this.#linger(peer, socket);
    for (const end of [socket, peer]) {
      if (end === undefined) continue;
      end.peer = undefined;
      end.held.length = 0;
      this.#loop.after(this.delayMs(), end.owner, () => this.#closed(end));
    }
  }
}
