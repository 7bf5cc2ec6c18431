// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { countOne } from "../drill/named-sandboxes.ts";
import { systemClock } from "../host/system-clock.ts";
import type { Violation } from "./ledger.ts";
import type { Told } from "./told.ts";

/** How one kind of operation was answered. */
export interface OperationCount {
  served: number;
  /** Documented answers that tell a caller to try again, look, or wait, by kind. */
  readonly again: Record<string, number>;
  /** All others. */
  readonly errors: Record<string, number>;
}

export type FoundViolation = Violation<string>;

const violationsKept = 20;
const samplesKept = 20;

/** What a run has counted. The first violation ends it. */
export class Tally {
  readonly operations: Record<string, OperationCount> = {};
  readonly faults: Record<string, number> = {};
  /** Operations that were under way when a fault landed. */
  readonly interrupted: Record<string, number> = {};
  readonly violations: FoundViolation[] = [];
  readonly streamEnds: Record<string, number> = {};
  /** The first errors, with when and of which sandbox: for whoever looks for them in the audit logs. */
  readonly errorSamples: string[] = [];
  filesChecked = 0;
  streamNumbers = 0;
  /** Times that a sandbox was recovered from its newest snapshot; and was lost for good because it had none. */
  recovered = 0;
  lostForGood = 0;
  givenUpWrites = 0;
  forksUnknown = 0;
  readonly #underWay: Record<string, number> = {};

  get isOver(): boolean {
    return this.violations.length > 0;
  }

  violate(found: FoundViolation): void {
    if (this.violations.length < violationsKept) this.violations.push(found);
  }

  /** Counts an operation, and how it was answered. */
  async during<T extends Told>(operation: string, work: () => Promise<T>, of = ""): Promise<T> {
    const beganAt = new Date(systemClock.wallMs()).toISOString();
    this.#underWay[operation] = (this.#underWay[operation] ?? 0) + 1;
    try {
      const told = await work();
      this.#count(operation, told);
      if (told.kind === "error" && this.errorSamples.length < samplesKept)
        this.errorSamples.push(`${beganAt} ${operation} ${of}: ${told.what}`);
      return told;
    } finally {
      this.#underWay[operation] = (this.#underWay[operation] ?? 1) - 1;
    }
  }

  /** A fault has landed. */
  landed(fault: string): void {
    countOne(this.faults, fault);
    for (const [operation, count] of Object.entries(this.#underWay))
      if (count > 0) this.interrupted[operation] = (this.interrupted[operation] ?? 0) + count;
  }

  #count(operation: string, told: Told): void {
    this.operations[operation] ??= { served: 0, again: {}, errors: {} };
    const count = this.operations[operation];
    switch (told.kind) {
      case "served":
        count.served += 1;
        return;
      case "again":
        countOne(count.again, told.what);
        return;
      case "lost":
        countOne(count.again, "410 lost");
        return;
      case "missing":
        countOne(count.again, "404");
        return;
      case "error":
        countOne(count.errors, told.what.slice(0, 160));
    }
  }
}
