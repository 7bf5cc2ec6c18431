// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Access } from "./access.ts";
import type { ExecutionIdentity } from "./identity.ts";
import type { WorkerId } from "./ids.ts";

/** Where a gateway believes an execution to be. Locates; never authorises. */
export interface Route {
  readonly identity: ExecutionIdentity;
  readonly endpoint: WorkerEndpoint;
}

/** How to reach a worker's node-api. */
export interface WorkerEndpoint {
  readonly workerId: WorkerId;
  readonly host: string;
  readonly port: number;
}

/** route, capability and the caller's authorisation as one immutable value. */
export interface RouteEntry {
  readonly route: Route;
  /** The signed capability, as the bytes to present. */
  readonly capability: string;
  readonly capabilityIssuedAtMs: number;
  readonly capabilityExpiresAtMs: number;
  readonly access: Access;
  /**
   * how long after its check the caller must be checked again. A span and no instant, so that no two clocks are ever
   * compared: the replica that checked says it, and the gateway counts it from the moment at which it asked.
   */
  readonly authorisedForMs: number;
}
