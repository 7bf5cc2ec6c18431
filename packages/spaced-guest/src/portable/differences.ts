// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What portable guests do otherwise than native ones. */
export const portableDifferences = {
  /** SPAWN with a terminal is refused: ERROR ENOSYS, step "pty". */
  pty: false,
  /** WATCH is refused: ERROR ENOSYS, step "watch". */
  watch: false,
  /** Arguments, environments and working folders are text; paths of file operations are any bytes. */
  binaryArguments: false,
  /** A script without an interpreter line is run by /bin/sh instead of being refused with ENOEXEC. */
  refusesScriptsWithoutInterpreter: false,
  /** Of every process: pid 1 is large, and must not be chosen in its place when the guest is out of memory. */
  oomScoreAdjustment: 1000,
  /** The guest's root may make its own pid 1 the first to be killed. */
  oomScoreOfPid1Protected: false,
  /** Memory of the guest's own limit that its pid 1 takes. */
  overheadBytes: 24 * 1024 * 1024,
  /** PREPARE and CLAIM: ERROR ENOSYS, step "prepare". */
  preparesGuests: false,
  /** RUN: ERROR ENOSYS, step "run". */
  runsRuntimes: false,
  /** The guest's mount namespace is its own user namespace's (its capabilities and the filter keep it from changing it). */
  mountsOwnedByHost: false,
} as const;
