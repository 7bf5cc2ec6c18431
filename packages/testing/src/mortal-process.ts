// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditSink, BootClock } from "@space/model";

/** What a dead process waits for: neither a value nor an item ever comes. */
const never: Promise<never> & AsyncIterable<never> = Object.assign(new Promise<never>(() => undefined), {
  [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined) }),
});

/**
 * A process that dies at a chosen point. Each call of its ports is two points: before it has its effect, and after that,
 * when the answer has not been heard. From the moment of its death on no call has an effect and none is answered.
 */
export class MortalProcess {
  #dieAt = Number.POSITIVE_INFINITY;
  #points = 0;
  #diedAt: string | undefined;

  /** It dies at this point, counted from now; the first is 1. */
  dieAt(point: number): void {
    this.#points = 0;
    this.#dieAt = point;
  }

  /** Points that were passed since {@link dieAt}, the deadly one included. */
  get points(): number {
    return this.#points;
  }

  /** Where it died; undefined while it lives. */
  get diedAt(): string | undefined {
    return this.#diedAt;
  }

  /** From now on, whatever it is at. */
  die(where: string): void {
    this.#diedAt ??= where;
  }

  /** The same port, as this process has it. Only what is called counts; what is read is read. */
  port<T extends object>(name: string, port: T): T {
    return new Proxy(port, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => this.#call(`${name}.${String(key)}`, () => value.apply(target, args));
      },
    });
  }

  /** Nothing is recorded by the dead. */
  audit(audit: AuditSink): AuditSink {
    return {
      record: (name, fields) => {
        if (this.#passes(`before audit ${name}`)) audit.record(name, fields);
      },
    };
  }

  /** No timer fires for the dead. */
  clock(clock: BootClock): BootClock {
    return {
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs(),
      bootMs: () => clock.bootMs(),
      after: (delayMs, callback) =>
        clock.after(delayMs, () => {
          if (this.#diedAt === undefined) callback();
        }),
    };
  }

  #call(name: string, call: () => unknown): unknown {
    if (!this.#passes(`before ${name}`)) return never;
    const value = call();
    if (!(value instanceof Promise)) return value;
    return value.then(
      (result: unknown) => (this.#passes(`after ${name}`) ? result : never),
      (error: unknown) => {
        if (this.#passes(`after ${name}`)) throw error;
        return never;
      },
    );
  }

  /** Whether it lives on behind this point. */
  #passes(where: string): boolean {
    if (this.#diedAt !== undefined) return false;
    this.#points += 1;
    if (this.#points === this.#dieAt) this.#diedAt = where;
    return this.#diedAt === undefined;
  }
}
