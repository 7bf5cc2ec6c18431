// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of a worker daemon. Its argument is its configuration file; its standard input ends when its supervisor
// does. With "stopAll" or "leave" after it, it only does what a daemon that could not end in order has left undone.

import { createWorker } from "@space/worker";
import { endForDaemon, startWorkerDaemon } from "./worker-daemon.ts";

const [config = "", ending] = process.argv.slice(2);
if (ending === "stopAll" || ending === "leave") await endForDaemon(config, ending);
else await startWorkerDaemon(config, createWorker);
