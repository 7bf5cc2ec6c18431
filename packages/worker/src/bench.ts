// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AdmissionCheck, WorkerPorts } from "./ports.ts";
import { composeWorker, type Worker, type WorkerOptions } from "./worker.ts";

/** Looks at nothing but whether something is installed: what verification costs is measured against it. */
const unchecked: AdmissionCheck = {
  check: ({ record }) =>
    record === undefined
      ? { kind: "deny", reason: "other-sandbox" }
      : { kind: "match", identity: record.identity },
};

/**
 * A worker WITHOUT verification, to measure what verification costs. A separate entry point, so that no product code
 * and no configuration can reach it; its `stats().admission` is `unchecked`.
 */
export function createUncheckedBenchWorker(options: WorkerOptions, ports: WorkerPorts): Promise<Worker> {
  return composeWorker(options, ports, { name: "unchecked", make: () => unchecked });
}
