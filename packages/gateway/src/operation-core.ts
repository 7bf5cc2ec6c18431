// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditSink, BootClock } from "@space/model";
import type { AdmissionIds } from "./admission-ids.ts";
import type { MutableCounts } from "./counters.ts";
import type { GatewayLimits } from "./limits.ts";
import type { RouteCache } from "./route-cache.ts";
import type { SandboxLoad } from "./sandbox-load.ts";
import type { WorkerLinks } from "./worker-links.ts";

/** An operation under way, as the gateway looks after it. */
export interface LiveOperation {
  /** Called now and then, at this moment of the boot-time clock: ends what has waited too long or lost its authorisation. */
  sweep(nowMs: number): void;
  /** The gateway is closing. */
  close(): void;
}

/** What all operations of a gateway share. */
export interface OperationCore {
  readonly cache: RouteCache;
  readonly links: WorkerLinks;
  readonly load: SandboxLoad;
  readonly admissions: AdmissionIds;
  readonly clock: BootClock;
  readonly audit: AuditSink;
  readonly counts: MutableCounts;
  /** Every operation under way. */
  readonly live: Set<LiveOperation>;
  /** callers that left while their stream was cut, of which its bridge does not know yet. */
  readonly farewells: Set<{ close(): void }>;
  readonly limits: GatewayLimits;
}
