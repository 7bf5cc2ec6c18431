// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { RunscProgram } from "./runsc-program.ts";

export interface GvisorSubstrateOptions {
  readonly runsc: RunscProgram;
  /** Bundles, images in the making and notes; only root may look. */
  readonly stateDir: string;
  /** Sockets; a short path (at most 62 bytes), traversable by `socketUid`. */
  readonly socketDir: string;
  /** One path component, the same at every start of this worker, unique on the host. */
  readonly controlGroup: string;
  /** Who may connect to guests: the user of `spaced-host`. */
  readonly socketUid: number;
  /** A start is refused when the file system of `stateDir` has less left. */
  readonly reserveBytes: number;
  /** How long guests go on without a daemon, by default 120 s; then the launcher ends them and itself. */
  readonly orphanSeconds?: number;
}
