// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { AuditLog } from "@space/audit-log";
import { CapabilityIssuer, importSigningKey } from "@space/capability";
import {
  type ControlLimits,
  type ControlPlane,
  defaultControlLimits,
  type KeyAdministration,
  openControlPlane,
} from "@space/control-plane";
import { createE2bApi, type E2bApi, type E2bApiOptions } from "@space/e2b-api";
import {
  type AuditSink,
  type Caller,
  type Clock,
  type ExecutionLimits,
  parseWorkerId,
  type RouteSource,
  type SandboxId,
  type Secret,
  type TenantId,
  type WorkerId,
} from "@space/model";
import { loadOrCreateEdge, loadOrCreateMesh } from "@space/mtls";
import { type ControlStore, openControlStore } from "@space/store-sqlite";
import { answerAdmin } from "../admin/admin-service.ts";
import { serveAdmin } from "../admin/admin-socket.ts";
import { adminSocketPath } from "../admin/open-admin.ts";
import { SnapshotKeys } from "../admin/snapshot-keys.ts";
import { openControlAudit } from "../data/control-audit.ts";
import { type DataDirectory, openDataDirectory } from "../data/data-directory.ts";
import { type InstallationKeys, openInstallationKeys } from "../data/installation-keys.ts";
import { issuer } from "../data/issuer.ts";
import { ownersKey } from "../data/owners-key.ts";
import type { SnapshotPlace } from "../data/snapshot-place.ts";
import { openSnapshotStorage, type SnapshotStorage, snapshotPorts } from "../data/snapshot-storage.ts";
import { listenMesh, portOf } from "../host/mesh-sockets.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { agentVersion, checkout } from "../product.ts";
import { controlPlaneName } from "../worker/component-names.ts";
import type { WorkerConfig } from "../worker/worker-config.ts";
import { type EdgeAddress, openEdgeServers } from "./edge-servers.ts";
import { answerNothing, type GatewayPart, startGateway } from "./gateway-part.ts";
import { Mesh } from "./mesh.ts";
import { allOnLoopback, type NetworkPlaces } from "./network-places.ts";
import { type EnrolledWorker, enrolWorkers } from "./worker-enrolment.ts";
import { supersededText, untilReady } from "./worker-readiness.ts";
import { WorkerSupervisor } from "./worker-supervisor.ts";

/** What is not paused by then is lost, so it is long: who cannot wait kills this process, and what runs stays for the next. */
const shutDownLimitMs = 15 * 60_000;

export interface EmbeddedOptions {
  readonly data: string;
  readonly listen: EdgeAddress;
  readonly tlsListen: EdgeAddress;
  readonly domain: string;
  readonly workers: number;
  readonly substrate: WorkerConfig["substrate"];
  /** Where snapshots are; absent: where they have been, at first in the data directory. */
  readonly snapshots?: SnapshotPlace;
  readonly memory?: WorkerConfig["memory"];
  /** Whether workers hand moved sandboxes over to each other; absent: where snapshots are not on this machine. */
  readonly directMoves?: boolean;
  /** For a person: what happened that they may want to know. */
  readonly log: (line: string) => void;
  /** What each sandbox may use; the control plane's defaults where absent. */
  readonly execution?: ExecutionLimits;
  /** Other bounds of the control plane than its defaults. */
  readonly limits?: Partial<ControlLimits>;
  /** Another worker program, for the benchmark alone. */
  readonly workerProgram?: string;
  readonly network?: NetworkPlaces;
}

export interface NewTenant {
  readonly tenantId: TenantId;
  readonly apiKey: Secret<string>;
}

/** What the gateway has done so far. */
export interface PathCounters {
  readonly requests: number;
  readonly refreshRoute: number;
  readonly repairs: number;
  /** Streams that went on over another connection. */
  readonly continued: number;
  /** How often the control plane was asked for a route. */
  readonly lookUps: number;
}

/** A whole SPACE on this machine: control plane and gateway in this process, workers in their own. */
export interface EmbeddedSystem {
  readonly apiUrl: string;
  /** With the TLS port: what E2B_DOMAIN is set to. */
  readonly domain: string;
  readonly apiKey: Secret<string>;
  readonly edgeCaPath: string;
  readonly workerIds: readonly WorkerId[];
  /** Where the control plane listens for workers. */
  readonly meshPort: number;
  readonly routes: RouteSource;
  /** thumbprint of the gateway's certificate on the mesh. */
  readonly presenter: string;
  /** view, rotate and revoke signing keys. */
  readonly keys: KeyAdministration;
  /** */
  chain: ControlPlane["chain"];
  /** the gateway gets a new certificate, as before the old one's end. */
  renewGatewayCertificate(): Promise<void>;
  /** The default tenant, as a caller. */
  readonly caller: Caller;
  createTenant(name: string): Promise<NewTenant>;
  /** An issuer with the installation's real key and another clock: to show that an old capability is refused. */
  issuerAt(clock: Clock): Promise<CapabilityIssuer>;
  /** A connection to a worker's node-api with the gateway's own certificate. */
  dialWorker(workerId: WorkerId): Promise<Duplex>;
  /** Another gateway beside the system's own, in this process: its own entries, keys and links. The caller closes it. */
  openGateway(): Promise<GatewayPart>;
  /** a gateway of another process gets each bundle from now on, until the returned function is called. */
  attachGateway: ControlPlane["attachGateway"];
  counters(): PathCounters;
  /** Guests whose endpoint is on this host now. */
  guestsLeft(): number;
  /** Pids of the worker daemons, by worker. */
  workerPids(): ReadonlyMap<WorkerId, number>;
  /** Pauses what runs, stops everything and releases the data directory. */
  stop(): Promise<void>;
}

/** Starts everything and resolves when it serves. Throws `data/in-use`, `host/unfit`, or what a part could not do. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedSystem> {
  const directory = openDataDirectory(options.data);
  const undo: (() => unknown)[] = [() => directory.release()];
  try {
    return await compose(options, directory, undo);
  } catch (error) {
    for (const step of undo.reverse()) await step();
    throw error;
  }
}

async function compose(
  options: EmbeddedOptions,
  directory: DataDirectory,
  undo: (() => unknown)[],
): Promise<EmbeddedSystem> {
  let apiUrl: string | undefined;
  const { keys, audit, store, control, admin, snapshots } = await startControlPlane(
    options,
    directory,
    undo,
    () => apiUrl,
  );
  const nowMs = systemClock.wallMs();
  const authority = await loadOrCreateMesh({ directory: directory.tls, nowMs });
  const mesh = await Mesh.join({ tls: directory.tls, authority, nowMs, audit });
  const { thumbprint } = mesh.controlPlane.identity;
  audit.record("mesh/certified", { name: controlPlaneName, thumbprint, reason: "start" });
  const network = options.network ?? allOnLoopback;
  const meshServer = await listenMesh(
    mesh.controlPlane,
    { host: network.controlPlane, port: 0 },
    { onPeer: (socket, { name }) => control.accept(socket, parseWorkerId(name)), audit },
  );
  undo.push(() => meshServer.close());

  const edge = await loadOrCreateEdge({ directory: directory.tls, nowMs, names: edgeNames(options) });
  let api: E2bApi | undefined;
  const gatewayPart = await startGateway(
    {
      folder: directory.control,
      rootKey: keys.rootKey.publicKey,
      api: (request, response) => api?.(request, response),
    },
    { control, mesh, audit },
  );
  const { gateway } = gatewayPart;
  undo.push(() => gatewayPart.close());
  const servers = await openEdgeServers({ plain: options.listen, tls: options.tlsListen, edge }, gateway);
  undo.push(() => servers.close());
  const domain = `${options.domain}:${servers.tlsPort}`;

  const enrolled = await enrolWorkers({
    directory,
    authority,
    audit,
    wanted: options,
    controlPort: portOf(meshServer),
    network,
    rootKey: keys.rootKey.publicKey,
    snapshots: snapshots.place,
  });
  const supervisor = superviseWorkers(options, enrolled);
  supervisor.start();
  // What an earlier run left running is not paused, so a start that fails must not end it.
  undo.push(() => supervisor.stop("leave"));
  const ready = (): boolean => control.workers().length === enrolled.length;
  api = openApi(options, { service: control.service, domain, ready, audit });
  await untilReady(ready, enrolled, supervisor);

  apiUrl = `http://${urlHost(options.listen.host)}:${servers.plainPort}`;
  const tenantId = await control.administration.ensureDefaultTenant();
  const parts: SystemParts = {
    audit,
    options,
    directory,
    keys,
    control,
    mesh,
    gatewayPart,
    enrolled,
    supervisor,
  };
  return describe(parts, {
    domain,
    apiUrl,
    meshPort: portOf(meshServer),
    edgeCaPath: edge.authorityPath,
    caller: { tenantId, principal: "operator" },
    apiKey: await ownersKey(directory.root, () => control.administration.createApiKey(tenantId)),
    async stop() {
      servers.close();
      admin.close();
      await control.shutDown(shutDownLimitMs);
      await supervisor.stop("stopAll");
      gatewayPart.close();
      await control.close();
      meshServer.close();
      store.close();
      await audit.close();
      rmSync(directory.run, { recursive: true, force: true });
      directory.release();
    },
  });
}

function openApi(
  { log }: EmbeddedOptions,
  ports: Pick<E2bApiOptions, "service" | "domain" | "ready" | "audit">,
): E2bApi {
  const failed = (error: unknown): void => log(`request failed: ${String(error)}`);
  return createE2bApi({ ...ports, envdVersion: agentVersion, clock: systemClock, failed });
}

interface StartedControlPlane {
  readonly keys: InstallationKeys;
  readonly audit: AuditLog;
  readonly store: ControlStore;
  readonly control: ControlPlane;
  readonly admin: Server;
  readonly snapshots: SnapshotStorage;
}

async function startControlPlane(
  options: EmbeddedOptions,
  directory: DataDirectory,
  undo: (() => unknown)[],
  apiUrl: () => string | undefined,
): Promise<StartedControlPlane> {
  const keys = openInstallationKeys(directory);
  const snapshots = await openSnapshotStorage(directory, options.snapshots);
  const audit = openControlAudit(directory.root);
  const store = openControlStore(directory.control, systemClock);
  undo.push(() => audit.close().then(() => store.close()));
  const { rootKey, privateKeys, tokenSecret } = keys;
  const limits = {
    ...defaultControlLimits,
    ...options.limits,
    ...(options.execution && { execution: options.execution }),
  };
  const sealing = snapshotPorts(snapshots, limits.collectTickMs);
  const own = { rootKey, privateKeys, clock: systemClock, random: systemRandom, audit };
  const directMoves = options.directMoves ?? snapshots.place.kind === "s3";
  const control = await openControlPlane(
    { issuer, tokenSecret, limits, directMoves },
    { ...store, ...sealing, ...own },
  );
  undo.push(() => control.close());
  audit.signWith(control.auditCheckpoint);
  const target = {
    keys: control.keys,
    rootKey,
    snapshotKeys: new SnapshotKeys({ ...snapshots, audit }),
    apiUrl,
    chain: (sandboxId: SandboxId) => control.chain(sandboxId),
  };
  const admin = await serveAdmin(
    adminSocketPath(directory.run),
    (method, params) => answerAdmin(target, method, params),
    audit,
  );
  undo.push(() => admin.close());
  return { keys, audit, store, control, admin, snapshots };
}

interface SystemParts {
  readonly audit: AuditSink;
  readonly options: EmbeddedOptions;
  readonly directory: DataDirectory;
  readonly keys: InstallationKeys;
  readonly control: ControlPlane;
  readonly mesh: Mesh;
  readonly gatewayPart: GatewayPart;
  readonly enrolled: readonly EnrolledWorker[];
  readonly supervisor: WorkerSupervisor;
}

function describe(
  parts: SystemParts,
  known: Pick<EmbeddedSystem, "domain" | "apiUrl" | "meshPort" | "edgeCaPath" | "caller" | "apiKey" | "stop">,
): EmbeddedSystem {
  const { directory, keys, control, mesh, gatewayPart, enrolled, supervisor } = parts;
  const { counts } = gatewayPart.gateway;
  return {
    ...known,
    workerIds: enrolled.map(({ workerId }) => workerId),
    routes: control.routes,
    get presenter() {
      return mesh.presenter;
    },
    keys: control.keys,
    chain: (sandboxId) => control.chain(sandboxId),
    renewGatewayCertificate: () => gatewayPart.renewCertificate(),
    async createTenant(name) {
      const tenantId = await control.administration.createTenant(name);
      return { tenantId, apiKey: (await control.administration.createApiKey(tenantId)).text };
    },
    issuerAt: async (clock) => {
      const signing = control.keys.view().keys.find(({ state }) => state === "signing");
      const pem = await keys.privateKeys.read(signing?.kid ?? "");
      if (pem === undefined) throw new Error("no key signs");
      return new CapabilityIssuer({
        issuer,
        key: importSigningKey(pem.reveal()),
        clock,
        random: systemRandom,
      });
    },
    async dialWorker(workerId) {
      const worker = control.workers().find((candidate) => candidate.workerId === workerId);
      if (worker === undefined) throw new Error(`${workerId} is not connected`);
      return mesh.dial(workerId, worker.endpoint);
    },
    openGateway: () => {
      const folder = mkdtempSync(join(directory.run, "gateway-"));
      const rootKey = keys.rootKey.publicKey;
      return startGateway({ folder, rootKey, api: answerNothing }, { control, mesh, audit: parts.audit });
    },
    attachGateway: (gateway) => control.attachGateway(gateway),
    counters: () => ({
      requests: counts.requests,
      refreshRoute: counts.refreshes,
      repairs: counts.repairs,
      continued: counts.continued,
      lookUps: control.routes.asked,
    }),
    guestsLeft: () => enrolled.reduce((sum, _worker, index) => sum + guestSockets(directory, index + 1), 0),
    workerPids: () =>
      new Map(enrolled.flatMap(({ workerId, name }) => pairWith(workerId, supervisor.pidOf(name)))),
  };
}

function pairWith(workerId: WorkerId, pid: number | undefined): [WorkerId, number][] {
  return pid === undefined ? [] : [[workerId, pid]];
}

function guestSockets(directory: DataDirectory, index: number): number {
  const folder = join(directory.worker(index).run, "guests");
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith("act_")).length : 0;
}

function superviseWorkers(options: EmbeddedOptions, enrolled: readonly EnrolledWorker[]): WorkerSupervisor {
  const program = options.workerProgram ?? join(checkout, "packages/space/src/worker/worker-main.ts");
  const onRestart = (name: string, how: string): void =>
    options.log(`${name} ended (${how}) and is started again; its sandboxes go on`);
  const onSuperseded = (name: string): void => options.log(supersededText(name));
  return new WorkerSupervisor({ program, workers: enrolled, onRestart, onSuperseded }, systemClock);
}

/** What callers dial: the domain, everything one label below it, and the addresses themselves. */
function edgeNames(options: EmbeddedOptions): readonly string[] {
  const addresses = [options.tlsListen.host].filter((host) => host !== "0.0.0.0" && host !== "::");
  return [...new Set([options.domain, `*.${options.domain}`, "127.0.0.1", ...addresses])];
}

function urlHost(host: string): string {
  const dialled = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return dialled.includes(":") ? `[${dialled}]` : dialled;
}
