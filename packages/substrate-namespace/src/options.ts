// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { CriuProgram } from "./criu-program.ts";
import type { LauncherKind } from "./launchers.ts";
import type { SpareBounds } from "./spare-demand.ts";

export interface NamespaceSubstrateOptions {
  /** Layers and notes; on a file system that overlay can use (not another overlay). Every parent is traversable (o+x). */
  readonly stateDir: string;
  /** Sockets; a short path (at most 70 bytes), traversable by `socketUid`. */
  readonly socketDir: string;
  /** One path component, the same at every start of this worker, unique on the host. */
  readonly controlGroup: string;
  /** Host user ids for guests: `uidRanges` ranges of 65536 from `firstUid` on. Nothing else on the host uses them. */
  readonly firstUid: number;
  readonly uidRanges: number;
  /** Who may connect to guests: the user of `spaced-host`. */
  readonly socketUid: number;
  /** A start is refused when the file system of `stateDir` has less left. */
  readonly reserveBytes: number;
  /** By default the native launcher where it has been built, otherwise the portable one. */
  readonly launcher?: LauncherKind;
  /** Guests prepared in advance, by default 4 to 16 (see `SpareDemand`): a start then takes one to two milliseconds. */
  readonly spareGuests?: SpareBounds;
  /** How long guests go on without a daemon, by default 120 s; then the launcher ends them and itself. */
  readonly orphanSeconds?: number;
  /** With it guests are saved and restored with their memory; needs the native launcher. */
  readonly criu?: CriuProgram;
  /** Further read-only folders, e.g. tools of the worker's own; each target exists in the guest's root. */
  readonly binds?: readonly { readonly source: string; readonly target: string }[];
}
