// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Door } from "./door.ts";
import type { Installation } from "./installation.ts";
import type { Tally } from "./tally.ts";

/** A time in which a worker may be given up, and its sandboxes with what no snapshot of theirs holds. */
export interface LossWindow {
  readonly workerId: string;
  /** Undefined: the worker stands still. */
  closedAtMs: number | undefined;
}

/** A sandbox, as far as a fault concerns it. */
export interface Exposed {
  readonly workerId: string;
  /** On its way somewhere, so that no worker can be ruled out. */
  readonly isMoving: boolean;
  /** From now on its worker may be given up. */
  enter(window: LossWindow): void;
}

/** What all parts of a run share. */
export interface Stage {
  /** Names this run in every file. */
  readonly run: string;
  readonly installation: Installation;
  readonly tally: Tally;
  readonly sandboxes: Set<Exposed>;
  readonly windows: LossWindow[];
  /** Opens a client; closed at the end of the run. */
  open(): Door;
  /** Nothing more is begun. */
  isOver(): boolean;
}
