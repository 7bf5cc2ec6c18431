// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export type { Fetch, FetchLane } from "./fetch-lane.ts";
export {
  encodeFrame,
  FrameBuilder,
  FrameParser,
  maxFrameBytes,
  PayloadReader,
  ProtocolError,
} from "./frames.ts";
export {
  GuestConnection,
  type GuestCredentials,
  type GuestWriter,
  type ReadHandlers,
  type ReadOptions,
} from "./guest-connection.ts";
export { type ConnectionFault, GuestConnectionError, GuestError } from "./guest-error.ts";
export { GuestPool, type GuestPoolOptions } from "./guest-pool.ts";
export { GuestProcess, type ProcessHandlers, type ProcessLink, type SavedProcess } from "./guest-process.ts";
export {
  dataChunkBytes,
  type EntryType,
  encodeStarted,
  type FetchedFile,
  fetchLimitBytes,
  type GuestEntry,
  GuestFrame,
  type ProcessExit,
  type SpawnRequest,
  secretBytes,
  stdinWindowBytes,
  type WatchEvent,
  type WatchEventKind,
  type WatchOptions,
  type WriteOptions,
} from "./guest-protocol.ts";
export { GuestWatch, type WatchHandlers } from "./guest-watch.ts";
export { LaunchClient } from "./launch-client.ts";
export {
  type BindMount,
  type ClaimRecord,
  type HostBind,
  type HostRecord,
  type LaunchExit,
  LaunchFrame,
  type LaunchListing,
  type PrepareRecord,
  type RestoreRecord,
  type RunRecord,
  type StartedProcess,
  type StartRecord,
} from "./launch-protocol.ts";
export { nativeLauncherPath, portableLauncherPath } from "./native-launcher.ts";
export { portableDifferences } from "./portable/differences.ts";
export { SmallFiles } from "./small-files.ts";
