// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export type { DaemonEvidence, DaemonRule, ExecutableEvidence } from "./daemon-gate.ts";
export type { ConnectedGuest, GuestConnector, PeerEvidence } from "./guest-endpoint.ts";
export { servedOperations } from "./serve-operation.ts";
export {
  createSpacedHost,
  defaultOrphanLimitMs,
  type SpacedHost,
  type SpacedHostOptions,
  type SpacedHostPorts,
} from "./spaced-host.ts";
