// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Decisions } from "./decisions.ts";

/** What the steps of the model do in the product's place, where the product has no function to ask. A planted fault leaves one out. */
export interface Guards {
  /** a worker without a lease starts nothing, serves nobody, and its guests stand still. */
  readonly fences: boolean;
  /** A start waits until its worker has acknowledged every earlier retirement of the sandbox. */
  readonly flushes: boolean;
  /** What the control plane tells a worker arrives in the order in which it was told, or not at all. */
  readonly keepsOrder: boolean;
  /** What ends an execution is written together with the order to retire it. */
  readonly writesOrders: boolean;
  /** an execution is published only when its worker has acknowledged the install. */
  readonly installsFirst: boolean;
  /** Incident 32: who drives a start publishes only if nobody has decided otherwise meanwhile. */
  readonly comparesRevision: boolean;
  /** Incident 31: an abort is recorded before it is done: from then on no commit of the pause wins. */
  readonly recordsAborts: boolean;
  /** A snapshot is made of a process that stands still, and nothing is let in until it goes on. */
  readonly quiesces: boolean;
  /** a certificate is installed only for a process that runs with the key that it names. */
  readonly checksProcess: boolean;
}

export const productGuards: Guards = {
  fences: true,
  flushes: true,
  keepsOrder: true,
  writesOrders: true,
  installsFirst: true,
  comparesRevision: true,
  recordsAborts: true,
  quiesces: true,
  checksProcess: true,
};

export interface Rules {
  readonly decisions: Decisions;
  readonly guards: Guards;
  /** How many generations there are: 1 to 3. */
  readonly generations: number;
}
