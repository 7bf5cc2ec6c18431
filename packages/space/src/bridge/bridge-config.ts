// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { SpaceError } from "@space/model";
import * as v from "valibot";

const path = v.pipe(v.string(), v.startsWith("/"));

const schema = v.strictObject({
  /** Where the bridge listens for its worker daemon. */
  socket: path,
  /** The daemon's own note: pid and start time of the one process that may connect. Only root can write it. */
  daemonNote: path,
});

export type BridgeConfig = v.InferOutput<typeof schema>;

export function readBridgeConfig(file: string): BridgeConfig {
  const result = v.safeParse(schema, JSON.parse(readFileSync(file, "utf8")));
  if (result.success) return result.output;
  throw new SpaceError("input/invalid", {
    field: v.getDotPath(result.issues[0]) ?? "config",
    problem: result.issues[0].message,
  });
}
