// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ControlScope } from "@space/model";

/** what may be done when the transport failed and the outcome is unknown. */
export type OperationClass = "read" | "effect";

export interface GuestOperation {
  readonly scope: ControlScope;
  readonly class: OperationClass;
}

/** every operation of the guest's agent with the one scope it needs. What is not here is refused. */
const table: Readonly<Record<string, GuestOperation>> = {
  "GET /health": { scope: "metrics", class: "read" },
  "GET /metrics": { scope: "metrics", class: "read" },
  "GET /envs": { scope: "process:run", class: "read" },
  "GET /files": { scope: "files:read", class: "read" },
  "HEAD /files": { scope: "files:read", class: "read" },
  "POST /files": { scope: "files:write", class: "effect" },
  "POST /files/compose": { scope: "files:write", class: "effect" },
  "POST /filesystem.Filesystem/Stat": { scope: "files:read", class: "read" },
  "POST /filesystem.Filesystem/ListDir": { scope: "files:read", class: "read" },
  "POST /filesystem.Filesystem/MakeDir": { scope: "files:write", class: "effect" },
  "POST /filesystem.Filesystem/Move": { scope: "files:write", class: "effect" },
  "POST /filesystem.Filesystem/Remove": { scope: "files:write", class: "effect" },
  "POST /filesystem.Filesystem/WatchDir": { scope: "watch", class: "effect" },
  "POST /filesystem.Filesystem/CreateWatcher": { scope: "watch", class: "effect" },
  "POST /filesystem.Filesystem/GetWatcherEvents": { scope: "watch", class: "effect" },
  "POST /filesystem.Filesystem/RemoveWatcher": { scope: "watch", class: "effect" },
  "POST /process.Process/List": { scope: "process:attach", class: "read" },
  "POST /process.Process/Start": { scope: "process:run", class: "effect" },
  "POST /process.Process/Connect": { scope: "process:attach", class: "read" },
  "POST /process.Process/SendInput": { scope: "process:attach", class: "effect" },
  "POST /process.Process/StreamInput": { scope: "process:attach", class: "effect" },
  "POST /process.Process/CloseStdin": { scope: "process:attach", class: "effect" },
  "POST /process.Process/SendSignal": { scope: "process:attach", class: "effect" },
  "POST /process.Process/Update": { scope: "pty", class: "effect" },
};

/** The operation that a method and a path (query allowed) name, by exact text: no decoding, no normalising. */
export function guestOperation(method: string, path: string): GuestOperation | undefined {
  const query = path.indexOf("?");
  const key = `${method} ${query < 0 ? path : path.slice(0, query)}`;
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

export const guestOperations: readonly string[] = Object.keys(table);

/** The port on which E2B's clients expect the agent. */
export const agentPort = 49_983;
