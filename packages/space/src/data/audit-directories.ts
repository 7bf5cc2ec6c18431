// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AuditTrust } from "@space/audit-log";
import { importPublicKey } from "@space/capability";
import { UsageError } from "../failure.ts";

/** The name under which control plane and gateway, which are one process, write their log. */
export const controlPlaneProcess = "control-plane";

/** Where a process keeps its audit log. A worker that enrols anew begins another. */
export function auditDirectory(data: string, process: string): string {
  return join(data, "audit", process);
}

export interface FoundLog {
  readonly process: string;
  readonly directory: string;
}

/** Every audit log under a data directory, the control plane's first. Throws {@link UsageError} where there is none. */
export function findAuditLogs(data: string): readonly FoundLog[] {
  const workers = join(data, "workers");
  const roots = [data, ...foldersIn(workers).map((name) => join(workers, name))];
  const found = roots.flatMap((root) =>
    foldersIn(join(root, "audit")).map((process) => ({ process, directory: auditDirectory(root, process) })),
  );
  if (found.length === 0) throw new UsageError(`there is no audit log under ${data}`);
  return found;
}

/** Whose word counts: the root's public half, and the authority of the mesh. `rootKey`: as it is known from elsewhere. */
export function auditTrust(data: string, rootKey: string | undefined): AuditTrust {
  const authority = join(data, "tls", "mesh-authority.crt");
  const pinned = rootKey ?? readFileSync(join(data, "control", "root.pub"), "utf8").trim();
  return {
    rootKey: importPublicKey(pinned),
    meshAuthority: existsSync(authority) ? readFileSync(authority, "utf8") : undefined,
  };
}

function foldersIn(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  const entries = readdirSync(path, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).toSorted();
}
