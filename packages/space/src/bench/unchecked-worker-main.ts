// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of a worker daemon WITHOUT verification: what verification costs is measured against it. Started by
// `bench path` alone; nothing else names this file, and no option or variable leads here.

import { createUncheckedBenchWorker } from "@space/worker/bench";
import { runWorkerProgram } from "../worker/worker-daemon.ts";

await runWorkerProgram(process.argv.slice(2), createUncheckedBenchWorker);
