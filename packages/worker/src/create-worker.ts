// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { WorkerPorts } from "./ports.ts";
import { CapabilityAdmission } from "./sbx-manager/capability-admission.ts";
import { composeWorker, type Worker, type WorkerOptions } from "./worker.ts";

/**
 * A worker that verifies every operation against its own durable records before a byte is forwarded. There is no option
 * that switches that off.
 */
export function createWorker(options: WorkerOptions, ports: WorkerPorts): Promise<Worker> {
  return composeWorker(options, ports, {
    name: "verified",
    make: (keys, { clock }) => new CapabilityAdmission(keys, clock),
  });
}
