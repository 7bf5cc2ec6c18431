// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export type { ApiHandler } from "./api-handler.ts";
export type { GatewayCounts } from "./counters.ts";
export { createGateway, type Gateway, type GatewayOptions, type GatewayPorts } from "./gateway.ts";
export type { HeldKeys } from "./held-keys.ts";
export { defaultGatewayLimits, type GatewayLimits, gatewayLimits } from "./limits.ts";
export { plainServerOptions, secureServerOptions } from "./server-attachment.ts";
export {
  createWorkerLinks,
  type Dial,
  defaultWorkerLinkLimits,
  type WorkerLinkLimits,
  type WorkerLinks,
} from "./worker-links.ts";
