// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type AuditSink, isSpaceError, newWorkerId, type WorkerId } from "@space/model";
import { type Authority, issuePeer } from "@space/mtls";
import { SqliteWorkerStore } from "@space/store-sqlite";
import type { DataDirectory } from "../data/data-directory.ts";
import type { SnapshotPlace } from "../data/snapshot-place.ts";
import { tools } from "../host/runsc.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { writeMeshIdentity } from "../worker/mesh-identity.ts";
import type { WorkerConfig } from "../worker/worker-config.ts";
import { type NetworkPlaces, placeOf } from "./network-places.ts";

/** Host user ids are given out in blocks of 2^26: one an installation, whose last ids are the bridges'. */
const blockSize = 2 ** 26;
const rangeSize = 2 ** 16;
/** Sandboxes that one worker holds at most. */
const capacityLimit = 256;
const freeLimitMs = 30_000;
const lookEveryMs = 100;

/** How many workers of which kind. By default a paused sandbox's memory stays on its worker. */
export interface WantedWorkers {
  readonly workers: number;
  readonly substrate: WorkerConfig["substrate"];
  readonly memory?: WorkerConfig["memory"];
}

export interface EnrolmentOptions {
  readonly directory: DataDirectory;
  readonly wanted: WantedWorkers;
  readonly controlPort: number;
  readonly network: NetworkPlaces;
  readonly rootKey: string;
  readonly snapshots: SnapshotPlace;
  readonly authority: Authority;
  readonly audit: AuditSink;
}

export interface EnrolledWorker {
  readonly name: string;
  readonly workerId: WorkerId;
  readonly configPath: string;
  readonly logPath: string;
  readonly enter: readonly string[];
}

/**
 * Gives each worker of this machine its configuration and a certificate in its own name. A worker is named by its store:
 * one whose store was lost enrols as another. Fresh TLS keys at every start. Throws `data/in-use` where a daemon of an
 * earlier run does not end.
 */
export async function enrolWorkers(options: EnrolmentOptions): Promise<readonly EnrolledWorker[]> {
  const authorityPath = join(options.directory.tls, "mesh-authority.crt");
  writeFileSync(authorityPath, options.authority.certificate, { mode: 0o644 });
  const enrolled: EnrolledWorker[] = [];
  for (let index = 1; index <= options.wanted.workers; index += 1)
    enrolled.push(await enrol(index, authorityPath, options));
  return enrolled;
}

async function enrol(index: number, authority: string, options: EnrolmentOptions): Promise<EnrolledWorker> {
  const { root, run } = options.directory.worker(index);
  mkdirSync(root, { recursive: true, mode: 0o711 });
  const workerId = await onceFree(() => workerOfStore(join(root, "records.db")));
  const identity = join(root, "mesh-identity.json");
  const issued = issuePeer(options.authority, { commonName: workerId, nowMs: systemClock.wallMs() });
  writeMeshIdentity(identity, issued);
  const { thumbprint } = issued;
  options.audit.record("mesh/certified", { name: workerId, thumbprint, reason: "start" });
  const place = placeOf(options.network, index);
  const block = (options.directory.userIdBlock + 1) * blockSize;
  const capacity = Math.min(capacityLimit, Math.floor(blockSize / rangeSize / (options.wanted.workers + 1)));
  const config: WorkerConfig = {
    workerId,
    substrate: options.wanted.substrate,
    memory: options.wanted.memory ?? "frozen",
    tools,
    data: root,
    run,
    snapshots: options.snapshots,
    controlPlane: { host: options.network.controlPlane, port: options.controlPort },
    listen: { host: place.host, port: 0 },
    tls: { identity, authority },
    rootKey: options.rootKey,
    capacity,
    firstUserId: block + (index - 1) * capacity * rangeSize,
    bridgeUserId: block + blockSize - index,
    controlGroup: `space-${run.split("/").slice(-2).join("-")}`,
  };
  const configPath = join(root, "config.json");
  writeFileSync(configPath, JSON.stringify(config, undefined, 2), { mode: 0o600 });
  const logPath = join(root, "worker.log");
  return { name: `worker-${index}`, workerId, configPath, logPath, enter: place.enter };
}

/**
 * Waits for the daemon of an earlier run that was killed: it reads the end of its input, and lets go of its store once what
 * it is doing has ended. Throws `data/in-use` where one does not.
 */
async function onceFree<T>(open: () => T): Promise<T> {
  const untilMs = systemClock.monotonicMs() + freeLimitMs;
  for (;;) {
    try {
      return open();
    } catch (error) {
      if (!isSpaceError(error, "data/in-use") || systemClock.monotonicMs() > untilMs) throw error;
      await pause(lookEveryMs);
    }
  }
}

function workerOfStore(path: string): WorkerId {
  const store = new SqliteWorkerStore(path, () => newWorkerId(systemRandom));
  try {
    return store.workerId;
  } finally {
    store.close();
  }
}
