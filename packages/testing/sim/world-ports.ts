// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditSink, WorkerId } from "@space/model";
import type { EventLoop, Incarnation } from "./event-loop.ts";
import type { FaultCounts } from "./faults.ts";
import type { Network } from "./network.ts";
import type { Oracle } from "./oracle.ts";
import type { ClockError } from "./sim-clock.ts";
import type { SimRandom } from "./sim-random.ts";
import type { SimSocket } from "./sim-socket.ts";

/** What every part of a world has. */
export interface WorldPorts {
  readonly loop: EventLoop;
  readonly network: Network;
  readonly oracle: Oracle;
  readonly faults: FaultCounts;
  readonly random: SimRandom;
  readonly clockErrors: (host: string) => ClockError;
  /** A line of the trace; cheap when nobody listens. */
  readonly trace: (line: () => string) => void;
}

/** What answers at a worker's address. */
export interface WorkerListener {
  readonly host: string;
  readonly workerId: WorkerId;
  readonly owner: Incarnation;
  accept(socket: SimSocket, presenter: string): void;
}

/** Who listens where: addresses are handed on from one worker to another. */
export type Addresses = Map<string, WorkerListener>;

export const silentAudit: AuditSink = { record: () => undefined };
