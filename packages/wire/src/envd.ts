// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// E2B's two services. Apart from the package's main export, so that only processes which speak them load protobuf.

export {
  type CreateWatcherRequest,
  type EntryInfo,
  EntryInfoSchema,
  Filesystem,
  FileType,
  type ListDirRequest,
  ListDirResponseSchema,
  StatResponseSchema,
  type WatchDirRequest,
  WatchDirRequestSchema,
  WatchDirResponseSchema,
} from "./gen/filesystem/filesystem_pb.ts";
export {
  ConnectRequestSchema,
  ConnectResponseSchema,
  ListResponseSchema,
  Process,
  type ProcessConfig,
  type ProcessEvent,
  ProcessEventSchema,
  type ProcessInput,
  type ProcessSelector,
  type PTY,
  Signal,
  type StartRequest,
  StartRequestSchema,
  StartResponseSchema,
  StreamInputRequestSchema,
} from "./gen/process/process_pb.ts";
