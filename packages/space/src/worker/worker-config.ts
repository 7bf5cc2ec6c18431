// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { parseWorkerId, SpaceError, type WorkerId } from "@space/model";
import * as v from "valibot";
import { snapshotPlaceSchema } from "../data/snapshot-place.ts";

const port = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65_535));
const whole = v.pipe(v.number(), v.integer(), v.minValue(1));
const path = v.pipe(v.string(), v.startsWith("/"));

const schema = v.strictObject({
  workerId: v.pipe(
    v.string(),
    v.transform((text): WorkerId => parseWorkerId(text)),
  ),
  substrate: v.picklist(["namespace", "gvisor"]),
  /** What becomes of a paused sandbox's memory on the namespace substrate: it stays on its worker, or CRIU saves it. */
  memory: v.picklist(["frozen", "criu"]),
  /** Programs that SPACE has fetched for itself. */
  tools: path,
  /** Where the worker keeps its records and its executions' layers. */
  data: path,
  /** Sockets. */
  run: path,
  /** Where snapshots are, and with which file of credentials. Keys come with the commands. */
  snapshots: snapshotPlaceSchema,
  controlPlane: v.strictObject({
    host: v.pipe(
      v.string(),
      v.check((text) => isIP(text) > 0),
    ),
    port,
  }),
  /** Where node-api listens; port 0 lets the system choose, and the choice is kept. */
  listen: v.strictObject({
    host: v.pipe(
      v.string(),
      v.check((text) => isIP(text) > 0),
    ),
    port,
  }),
  /** PEM files: this worker's key and certificate, and the mesh's authority. */
  tls: v.strictObject({ identity: path, authority: path }),
  /** The installation's root public key (raw, base64url). */
  rootKey: v.string(),
  capacity: whole,
  firstUserId: whole,
  bridgeUserId: whole,
  /** One component, unique on the host. */
  controlGroup: v.pipe(v.string(), v.regex(/^space-[a-z0-9-]{1,60}$/)),
});

/** What one worker daemon is told at its start. Holds no secret: its key is in a file of its own. */
export type WorkerConfig = v.InferOutput<typeof schema>;

/** Reads the file strictly. Throws `input/invalid` naming the member. */
export function readWorkerConfig(file: string): WorkerConfig {
  const result = v.safeParse(schema, JSON.parse(readFileSync(file, "utf8")));
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new SpaceError("input/invalid", { field: v.getDotPath(issue) ?? "config", problem: issue.message });
}
