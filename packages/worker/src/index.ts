// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { createWorker } from "./create-worker.ts";
export { defaultWorkerLimits, type WorkerLimits } from "./limits.ts";
export type {
  AdmissionCheck,
  AdmissionRequest,
  HostConnector,
  PeerDialler,
  WorkerPorts,
  WorkerStore,
} from "./ports.ts";
export type { Worker, WorkerOptions, WorkerStats } from "./worker.ts";
