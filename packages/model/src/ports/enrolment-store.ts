// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { WorkerId } from "../ids.ts";
import type { StoreSuccession } from "../store-succession.ts";

/** The control plane's side of what binds workers to their stores. Writes are durable before they resolve. Throws `store/failed`. */
export interface EnrolmentStore {
  /**
   * Takes the next step of a worker's store. Wins for a worker that was never seen and a store that was never connected;
   * for the store of the last connection; and for exactly the last step again, whose answer was lost. Any other is an
   * older store or a copy: nothing is written.
   */
  succeed(workerId: WorkerId, step: StoreSuccession, atMs: number): Promise<boolean>;
  /** Every worker that was ever connected. */
  enrolled(): Promise<readonly WorkerId[]>;
}

/** The worker's side, in the store that is meant. Durable before each returns. Throws `store/failed`. */
export interface SuccessionStore {
  /** The step that is under way, or a new one with this token. */
  beginSuccession(newToken: () => string): StoreSuccession;
  /** The control plane has taken the step. */
  finishSuccession(step: StoreSuccession): void;
}
