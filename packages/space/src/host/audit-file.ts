// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditSink } from "@space/model";
import pino from "pino";

/** Appends audit events to a file of mode 0600, one JSON object a line, in the background. */
export function auditFile(path: string): AuditSink & { close(): void } {
  const destination = pino.destination({ dest: path, mkdir: true, mode: 0o600, sync: false });
  const log = pino({ base: null, formatters: { level: () => ({}) } }, destination);
  return {
    record: (name, fields) => log.info({ ...fields, event: name }),
    close: () => destination.end(),
  };
}
