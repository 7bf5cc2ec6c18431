// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { AuditLog, meshCheckpointSigner } from "@space/audit-log";
import { importPublicKey } from "@space/capability";
import {
  type AuditSink,
  isSpaceError,
  newWorkerId,
  parseWorkerId,
  SpaceError,
  type Substrate,
  unreachable,
} from "@space/model";
import { snapshotStore } from "@space/snapshot";
import type { LaunchClient } from "@space/spaced-guest";
import { SqliteWorkerStore } from "@space/store-sqlite";
import { GvisorSubstrate, requireRunsc } from "@space/substrate-gvisor";
import { NamespaceSubstrate, requireCriu } from "@space/substrate-namespace";
import type { createWorker, PeerDialler, Worker } from "@space/worker";
import { auditDirectory } from "../data/audit-directories.ts";
import { openSnapshotPlace } from "../data/snapshot-place.ts";
import { errorLog } from "../host/error-log.ts";
import { MeshDialler } from "../host/mesh-dialler.ts";
import { type MeshMember, type MeshPeer, portOf } from "../host/mesh-sockets.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { BridgeProcess } from "./bridge-process.ts";
import { controlPlaneName, gatewayName } from "./component-names.ts";
import { writeDaemonNote } from "./daemon-note.ts";
import { supersededExitCode } from "./exit-codes.ts";
import { listenOnKeptPort } from "./kept-port.ts";
import { readMeshIdentity } from "./mesh-identity.ts";
import { readWorkerConfig, type WorkerConfig } from "./worker-config.ts";

const redialMs = 200;
const reserveBytes = 1024 * 1024 * 1024;
const log = errorLog();

/** A driver whose launcher also starts the bridge. */
type WorkerSubstrate = Substrate & { readonly launchClient: LaunchClient };

/**
 * What a worker's program does. Its argument is its configuration file; its standard input ends when its supervisor
 * does. With "stopAll" or "leave" after it, it only does what a daemon that could not end in order has left undone.
 */
export function runWorkerProgram(args: readonly string[], create: typeof createWorker): Promise<void> {
  const [configPath = "", ending] = args;
  if (ending === "stopAll" || ending === "leave") return endForDaemon(configPath, ending);
  return startWorkerDaemon(configPath, create);
}

/** Runs one worker until it is told to stop. `create` decides how operations are admitted. */
async function startWorkerDaemon(configPath: string, create: typeof createWorker): Promise<void> {
  const asked = firstStop();
  const config = readWorkerConfig(configPath);
  mkdirSync(config.run, { recursive: true, mode: 0o755 });
  writeDaemonNote(config.run);
  const records = new SqliteWorkerStore(join(config.data, "records.db"), () => newWorkerId(systemRandom));
  if (records.workerId !== config.workerId) {
    throw new SpaceError("certificate/refused", { problem: "the store is another worker's: enrol anew" });
  }
  const substrate = await openSubstrate(config);
  const { workerId } = config;
  const audit = AuditLog.open(
    { directory: auditDirectory(config.data, workerId), process: workerId },
    { clock: systemClock, random: systemRandom },
  );
  const identity = readMeshIdentity(config.tls.identity);
  audit.signWith(meshCheckpointSigner({ certificate: identity.certificate, key: identity.key.reveal() }));
  const member: MeshMember = {
    identity,
    authorityCertificate: readFileSync(config.tls.authority, "utf8"),
  };
  const dialler = new MeshDialler({ audit, clock: systemClock });
  const peers: PeerDialler = {
    dial: ({ workerId: name, host, port }, signal) => dialler.dial(member, { host, port, name }, signal),
  };
  const worker = await composeWorker(config, { create, records, substrate, audit, peers });
  const kept = { ...config.listen, file: join(config.data, "port") };
  const onPeer = (socket: Duplex, { name, thumbprint }: MeshPeer): void => {
    if (name === gatewayName) worker.acceptGateway(socket, thumbprint);
    else if (name === controlPlaneName)
      throw new SpaceError("endpoint/mismatch", { problem: "the peer is neither gateway nor worker" });
    else worker.acceptPeer(socket, parseWorkerId(name));
  };
  const server = await listenOnKeptPort(member, kept, { onPeer, audit });
  const stopped = new AbortController();
  const stop = (how: "stopAll" | "leave", code: number): void => {
    if (stopped.signal.aborted) return;
    stopped.abort();
    server.close();
    const closed = worker.close(how).then(() => audit.close());
    closed.then(
      () => process.exit(code),
      (error: unknown) => {
        log.error({ error: String(error) }, "stop failed");
        process.exit(1);
      },
    );
  };
  void asked.then((how) => stop(how, 0));
  await serveControlPlane(worker, { config, member, port: portOf(server), dialler }, stopped.signal);
  // What runs here is by a store that is not this worker's any more: nobody will ever ask for it.
  stop("stopAll", supersededExitCode);
}

/** Ends what runs, or sees to it that what is left has a reason to run, where no daemon does. */
async function endForDaemon(configPath: string, how: "stopAll" | "leave"): Promise<void> {
  const substrate = await openSubstrate(readWorkerConfig(configPath));
  await substrate.close(how);
  process.exit(0);
}

/** Each driver has folders of its own: what another one left is not its to judge. */
async function openSubstrate(config: WorkerConfig): Promise<WorkerSubstrate> {
  const { controlGroup, bridgeUserId: socketUid } = config;
  switch (config.substrate) {
    case "namespace":
      return NamespaceSubstrate.open({
        stateDir: join(config.data, "executions"),
        socketDir: join(config.run, "guests"),
        controlGroup,
        firstUid: config.firstUserId,
        uidRanges: config.capacity,
        socketUid,
        reserveBytes,
        ...(config.memory === "criu" ? { criu: await requireCriu(config.tools) } : {}),
      });
    case "gvisor":
      return GvisorSubstrate.open({
        runsc: await requireRunsc(config.tools),
        stateDir: join(config.data, "gvisor"),
        socketDir: join(config.run, "g"),
        controlGroup,
        socketUid,
        reserveBytes,
      });
    default:
      return unreachable(config.substrate);
  }
}

async function composeWorker(
  config: WorkerConfig,
  parts: {
    create: typeof createWorker;
    records: SqliteWorkerStore;
    substrate: WorkerSubstrate;
    audit: AuditSink;
    peers: PeerDialler;
  },
): Promise<Worker> {
  const { create, records, substrate, audit, peers } = parts;
  const bridge = new BridgeProcess(
    { run: config.run, userId: config.bridgeUserId, logPath: join(config.data, "bridge.log") },
    () => substrate.launchClient,
  );
  const store = await openSnapshotPlace(config.snapshots);
  return create(
    { workerId: config.workerId, capacity: config.capacity, rootPublicKey: importPublicKey(config.rootKey) },
    {
      records,
      substrate,
      snapshots: snapshotStore({ store, random: systemRandom }),
      host: bridge,
      peers,
      clock: systemClock,
      random: systemRandom,
      audit,
    },
  );
}

/**
 * Keeps one connection to the control plane, dialled anew whenever it ends. Resolves when the signal fires, or when the
 * control plane says that this store has been superseded: that is final (incident 35).
 */
async function serveControlPlane(
  worker: Worker,
  place: { config: WorkerConfig; member: MeshMember; port: number; dialler: MeshDialler },
  signal: AbortSignal,
): Promise<void> {
  const { config, member, port, dialler } = place;
  while (!signal.aborted) {
    try {
      const socket = await dialler.dial(member, { ...config.controlPlane, name: controlPlaneName });
      await worker.serveControlPlane(socket, { host: config.listen.host, port });
      log.info({}, "control plane link ended");
    } catch (error) {
      if (isSpaceError(error, "worker/superseded")) {
        log.error(
          { workerId: config.workerId },
          "this store is older than its worker, or a copy: enrol anew",
        );
        return;
      }
      log.warn({ error: String(error) }, "control plane not reached");
    }
    await pause(redialMs);
  }
}

/**
 * Listens from the first moment, so that also a start that is under way is ended in order. SIGTERM: the operator stops
 * SPACE, and everything ends. The end of standard input: the supervisor died; what runs goes on for the next daemon.
 */
function firstStop(): Promise<"stopAll" | "leave"> {
  return new Promise((resolve) => {
    process.on("SIGTERM", () => resolve("stopAll"));
    process.on("SIGINT", () => undefined); // the supervisor decides the order of stopping
    process.stdin.on("end", () => resolve("leave"));
    process.stdin.on("error", () => resolve("leave"));
    process.stdin.resume();
  });
}
