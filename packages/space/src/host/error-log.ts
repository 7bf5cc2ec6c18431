// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import pino, { type Logger } from "pino";

const bufferLimitBytes = 1024 * 1024;

/** Logs to standard error, which is a file where nobody sits at a terminal. A full disk costs lines, never the process. */
export function errorLog(): Logger {
  const destination = pino.destination({ dest: 2, sync: true, maxLength: bufferLimitBytes });
  destination.on("error", () => undefined);
  return pino({ base: null }, destination);
}
