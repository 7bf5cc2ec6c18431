// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/**
 * One run of one process: from its start to its crash. Everything that happens to it is an event that it owns; after
 * the crash none of them happens any more, so that no promise which it waits for ever resolves.
 */
export class Incarnation {
  readonly name: string;
  alive = true;
  /** It stands still until then (SIGSTOP): what was to happen to it meanwhile happens at that instant, in its order. */
  stoppedUntilMs = 0;

  constructor(name: string) {
    this.name = name;
  }
}

/** Thrown out of a port at the instant of a crash: unwinds what runs, which can reach nothing any more. */
export class Crashed extends Error {
  override readonly name = "Crashed";
}

interface Event {
  atMs: number;
  order: number;
  readonly owner: Incarnation | undefined;
  /** Undefined: cancelled. */
  action: (() => void) | undefined;
}

/** So many cancelled events are no reason to look through all. */
const mostCancelled = 200;

/** Node's own function that runs what `nextTick` and promises have queued, which costs a seventh of a turn of the real event loop. */
const runTicks: () => void = (process as unknown as { _tickCallback(): void })._tickCallback; // cast: not in the types

/**
 * A whole world's event loop, in virtual time. An event is one turn: its action, then every promise continuation that
 * follows from it. Only one runs at a time, in an order that depends on nothing but the times asked for.
 */
export class EventLoop {
  #nowMs = 1_000_000;
  #order = 0;
  #heap: Event[] = [];
  /** Events in it that were cancelled. */
  #cancelled = 0;
  #soon: Event[] = [];
  #soonAt = 0;
  #current: Incarnation | undefined;
  /** Events that have happened. */
  steps = 0;
  /** Told what an event threw. */
  onBug: (error: unknown, owner: Incarnation | undefined) => void = (error) => {
    throw error;
  };

  /** True time, in milliseconds; no component's clock shows it. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Whose event happens now. */
  get current(): Incarnation | undefined {
    return this.#current;
  }

  /** Returns the function that cancels. */
  after(delayMs: number, owner: Incarnation | undefined, action: () => void): () => void {
    const event: Event = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order, owner, action };
    this.#order += 1;
    this.#push(event);
    return () => {
      if (event.action === undefined) return;
      event.action = undefined;
      this.#cancelled += 1;
      if (this.#cancelled > mostCancelled && this.#cancelled * 2 > this.#heap.length) this.#sweep();
    };
  }

  /** Now, as a turn of this owner: for an event of nobody's that turns out to be his. */
  turnOf(owner: Incarnation | undefined, action: () => void): void {
    if (owner?.alive === false) return;
    this.#current = owner;
    action();
  }

  /** At this very instant, after what was asked for before. */
  soon(owner: Incarnation | undefined, action: () => void): void {
    this.#soon.push({ atMs: this.#nowMs, order: 0, owner, action });
  }

  /** The value of `action`, `delayMs` from now, as a port gives it to its user; never when that has crashed by then. */
  later<T>(delayMs: number, owner: Incarnation | undefined, action: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.after(delayMs, owner, () => {
        try {
          resolve(action());
        } catch (error) {
          if (error instanceof Crashed) throw error;
          reject(error);
        }
      });
    });
  }

  sleep(delayMs: number, owner: Incarnation | undefined): Promise<void> {
    return this.later(delayMs, owner, () => undefined);
  }

  /** Runs until `untilMs` or until `isOver` says so. Must be called from no promise continuation. */
  run(untilMs: number, isOver: () => boolean): void {
    for (;;) {
      const event = this.#next(untilMs);
      if (event === undefined) break;
      this.#happen(event);
      if (isOver()) return;
    }
  }

  #next(untilMs: number): Event | undefined {
    const soon = this.#soon[this.#soonAt];
    if (soon !== undefined) {
      this.#soonAt += 1;
      if (this.#soonAt === this.#soon.length) {
        this.#soon = [];
        this.#soonAt = 0;
      }
      return soon;
    }
    const first = this.#heap[0];
    if (first === undefined || first.atMs > untilMs) return undefined;
    this.#nowMs = first.atMs;
    return this.#pop();
  }

  #happen(event: Event): void {
    const { owner, action } = event;
    if (action === undefined) {
      this.#cancelled -= 1;
      return;
    }
    if (owner !== undefined && owner.stoppedUntilMs > this.#nowMs && owner.alive)
      return this.#postpone(event, owner);
    event.action = undefined; // to cancel it is too late
    if (owner?.alive === false) return;
    this.#current = owner;
    this.steps += 1;
    try {
      action();
    } catch (error) {
      if (!(error instanceof Crashed)) this.onBug(error, this.#current);
    }
    runTicks();
    this.#current = undefined;
  }

  #postpone(event: Event, owner: Incarnation): void {
    event.atMs = owner.stoppedUntilMs;
    event.order = this.#order;
    this.#order += 1;
    this.#push(event);
  }

  /** Most timers are cancelled, and long before their time. */
  #sweep(): void {
    const left = this.#heap.filter(({ action }) => action !== undefined);
    this.#heap = [];
    this.#cancelled = 0;
    for (const event of left) this.#push(event);
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up] as Event; // cast: within the array
      if (!isBefore(event, parent)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const isRight = right < heap.length && isBefore(heap[right] as Event, heap[left] as Event); // cast: within
      const down = isRight ? right : left;
      const child = heap[down] as Event; // cast: within the array
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = down;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
