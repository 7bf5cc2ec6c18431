// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of a worker daemon.

import { createWorker } from "@space/worker";
import { runWorkerProgram } from "./worker-daemon.ts";

await runWorkerProgram(process.argv.slice(2), createWorker);
