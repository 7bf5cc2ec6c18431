// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { fileSignature } from "./access-tokens.ts";
export type { Administration, NewApiKey } from "./api-keys.ts";
export {
  type AttachedWorker,
  type ControlPlane,
  type ControlPlaneOptions,
  openControlPlane,
} from "./control-plane.ts";
export type { KeyAdministration, KeyView } from "./key-administration.ts";
export { type ControlLimits, defaultControlLimits } from "./limits.ts";
export { type OfflineKeys, openOfflineKeys } from "./offline-keys.ts";
export type { ControlPlanePorts } from "./parts.ts";
export type { ShutDownReport } from "./shut-down.ts";
