// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of a worker daemon. Its only argument is its configuration file; its standard input ends when its
// supervisor does.

import { createWorker } from "@space/worker";
import { startWorkerDaemon } from "./worker-daemon.ts";

await startWorkerDaemon(process.argv[2] ?? "", createWorker);
