// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { AuditLog } from "@space/audit-log";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { auditDirectory, controlPlaneProcess } from "./audit-directories.ts";

/** The control plane's audit log in a data directory that this process holds. */
export function openControlAudit(root: string): AuditLog {
  return AuditLog.open(
    { directory: auditDirectory(root, controlPlaneProcess), process: controlPlaneProcess },
    { clock: systemClock, random: systemRandom },
  );
}
