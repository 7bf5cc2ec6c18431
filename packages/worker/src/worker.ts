// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import type { Duplex } from "node:stream";
import { recordSetDigest, SealedChains, TrustedKeys } from "@space/capability";
import {
  type ExecutionExit,
  isSpaceError,
  newSuccessionToken,
  type ReceiverFeed,
  type RecordReceiver,
  type SandboxId,
  SpaceError,
  type WorkerControl,
  type WorkerId,
  type WorkerInventory,
  type WorkerPresence,
} from "@space/model";
import { resetReason } from "@space/wire";
import { newCounters, type WorkerCounters } from "./counters.ts";
import { defaultWorkerLimits, type WorkerLimits } from "./limits.ts";
import { GatewayLink } from "./node-api/gateway-link.ts";
import { PeerLink } from "./node-api/peer-link.ts";
import type { AdmissionCheck, WorkerPorts } from "./ports.ts";
import { ControlPlaneLink } from "./sbx-manager/control-plane-link.ts";
import { Executions } from "./sbx-manager/executions.ts";
import { HandOvers } from "./sbx-manager/hand-overs.ts";
import { HostBridge } from "./sbx-manager/host-bridge.ts";
import { inventoryOf } from "./sbx-manager/inventory.ts";
import { KeyedQueue } from "./sbx-manager/keyed-queue.ts";
import { LeaseKeeper } from "./sbx-manager/lease-keeper.ts";
import { OpenStreams } from "./sbx-manager/open-streams.ts";
import { loseExecution, type WorkerParts } from "./sbx-manager/parts.ts";
import { readopt } from "./sbx-manager/readopt.ts";
import { Reports } from "./sbx-manager/reports.ts";
import { workerCommands, workerFeed } from "./sbx-manager/worker-commands.ts";

export interface WorkerOptions {
  /** The worker of the record store. */
  readonly workerId: WorkerId;
  /** Executions held at once, frozen ones included. */
  readonly capacity: number;
  /** the pod that this process runs in, on Kubernetes. */
  readonly podUid?: string;
  /** the pinned root that signs verification bundles. */
  readonly rootPublicKey: KeyObject;
  readonly limits?: Partial<WorkerLimits>;
}

export interface WorkerStats extends Readonly<WorkerCounters> {
  readonly admission: "verified" | "unchecked";
  readonly openStreams: number;
  readonly executions: number;
  readonly bridgeConnected: boolean;
  readonly bundleVersion: number;
  /** whether it has a lease now. */
  readonly leased: boolean;
}

/** One worker: node-api and sbx-manager in one process. */
export interface Worker {
  readonly workerId: WorkerId;
  readonly control: WorkerControl & RecordReceiver;
  /** What the control plane's feed says. */
  readonly feed: ReceiverFeed;
  /** asks for leases over this from now on; undefined: over nothing. {@link serveControlPlane} does so by itself. */
  leaseFrom(presence: Pick<WorkerPresence, "renew"> | undefined): void;
  /** Takes a gateway's connection; `presenter` is the verified thumbprint of its certificate. */
  acceptGateway(socket: Duplex, presenter: string): void;
  /** Takes another worker's connection; `peer` is who its verified certificate names. */
  acceptPeer(socket: Duplex, peer: WorkerId): void;
  /**
   * Serves the control plane over a connection that this worker dialled and verified. Says hello first; resolves when
   * the link has ended, and rejects when the greeting failed; with `worker/superseded` this worker serves nobody any
   * more, and its store has to enrol as another. `endpoint` is where gateways reach this worker.
   */
  serveControlPlane(
    socket: Duplex,
    endpoint: { readonly host: string; readonly port: number },
  ): Promise<void>;
  inventory(): WorkerInventory;
  stats(): WorkerStats;
  /** Ends every link. `stopAll`: and every execution; otherwise they go on for the next daemon to adopt. */
  close(how: "stopAll" | "leave"): Promise<void>;
}

export interface Admission {
  readonly name: WorkerStats["admission"];
  /** Called once, with the keys that this worker trusts. */
  readonly make: (keys: TrustedKeys, ports: WorkerPorts) => AdmissionCheck;
}

/** Re-adopts what still runs, then serves. Throws what its ports throw: then nothing was changed that the next try would miss. */
export async function composeWorker(
  options: WorkerOptions,
  ports: WorkerPorts,
  admission: Admission,
): Promise<Worker> {
  const parts = gatherParts(options, ports);
  ports.substrate.onExit((exit) => handleExit(parts, exit));
  try {
    await readopt(parts);
  } catch (error) {
    parts.bridge.close();
    throw error;
  }
  return new ComposedWorker(parts, admission);
}

function gatherParts(options: WorkerOptions, ports: WorkerPorts): WorkerParts {
  const limits = { ...defaultWorkerLimits, ...options.limits };
  const { clock } = ports;
  const counters = newCounters();
  const executions = new Executions(ports.records);
  const keys = new TrustedKeys({
    root: options.rootPublicKey,
    store: ports.records,
    memoryLimit: limits.rememberedCapabilities,
  });
  const parts: WorkerParts = {
    ...ports,
    workerId: options.workerId,
    substrateName: ports.substrate.abilities.name,
    podUid: options.podUid,
    capacity: options.capacity,
    limits,
    counters,
    executions,
    keys,
    sealed: new SealedChains({ root: options.rootPublicKey, remembered: limits.rememberedChains }),
    lease: new LeaseKeeper({
      ...ports,
      workerId: options.workerId,
      keys,
      holders: [ports.substrate, { holdUntil: (deadlineMs) => parts.bridge.holdUntil(deadlineMs) }],
      retryMs: limits.leaseRetryMs,
      recordsDigest: () => recordSetDigest(inventoryOf(parts)),
      onRenewed: () => parts.streams.resumeAll(),
      onGivenUp: () => {
        const cutStreams = parts.streams.size;
        counters.cut += cutStreams;
        parts.streams.cutAll(resetReason.leaseEnded);
        ports.audit.record("lease/given-up", { workerId: options.workerId, cutStreams });
      },
    }),
    streams: new OpenStreams(clock, (sandboxId) => ports.records.read(sandboxId)),
    handOvers: new HandOvers(limits, clock),
    reading: new Set(),
    reports: new Reports(clock, limits.reportRetryMs),
    queue: new KeyedQueue<SandboxId>(
      limits.waitingCommands,
      (sandboxId) => new SpaceError("worker/busy", { sandboxId, limit: limits.waitingCommands }),
    ),
    bridge: new HostBridge(limits, {
      host: ports.host,
      clock,
      executions,
      counters,
      audit: ports.audit,
      deadlineBootMs: () => parts.lease.deadlineBootMs,
      onRefused: (activation, problem) => {
        const activationId = activation.identity.activation.id;
        ports.audit.record("endpoint/refused", { activationId, problem });
        loseExecution(parts, activation, problem);
      },
    }),
  };
  return parts;
}

function handleExit(parts: WorkerParts, exit: ExecutionExit): void {
  const starting = parts.executions.findStart(exit.activationId);
  if (starting !== undefined) starting.exited = true; // whoever starts it clears it away
  const activation = parts.executions.startedAs(exit.activationId);
  if (activation !== undefined) loseExecution(parts, activation, exit.reason);
}

class ComposedWorker implements Worker {
  readonly control: WorkerControl & RecordReceiver;
  readonly feed: ReceiverFeed;
  readonly #parts: WorkerParts;
  readonly #admission: AdmissionCheck;
  readonly #admissionName: WorkerStats["admission"];
  readonly #gateways = new Set<GatewayLink>();
  readonly #peers = new Set<PeerLink>();
  readonly #controlPlanes = new Set<ControlPlaneLink>();
  #closed = false;
  #isSuperseded = false;

  constructor(parts: WorkerParts, admission: Admission) {
    this.#parts = parts;
    this.#admissionName = admission.name;
    this.#admission = admission.make(parts.keys, parts);
    this.control = workerCommands(parts);
    this.feed = workerFeed(parts, this.control);
  }

  get workerId(): WorkerId {
    return this.#parts.workerId;
  }

  leaseFrom(presence: Pick<WorkerPresence, "renew"> | undefined): void {
    this.#parts.lease.use(presence);
  }

  acceptGateway(socket: Duplex, presenter: string): void {
    if (this.#closed || this.#isSuperseded) {
      socket.destroy();
      return;
    }
    const link: GatewayLink = new GatewayLink(this.#parts, socket, {
      presenter,
      admission: this.#admission,
      onClose: () => this.#gateways.delete(link),
    });
    this.#gateways.add(link);
  }

  acceptPeer(socket: Duplex, peer: WorkerId): void {
    const { limits, counters, audit } = this.#parts;
    const hasRoom = this.#peers.size < limits.peers;
    if (this.#closed || this.#isSuperseded || !hasRoom) {
      socket.destroy();
      if (hasRoom) return;
      counters.handOversRefused += 1;
      audit.record("hand-over/refused", { peer, problem: "too many" });
      return;
    }
    const link: PeerLink = new PeerLink(this.#parts, socket, {
      peer,
      onClose: () => this.#peers.delete(link),
    });
    this.#peers.add(link);
  }

  async serveControlPlane(
    socket: Duplex,
    endpoint: { readonly host: string; readonly port: number },
  ): Promise<void> {
    const link = new ControlPlaneLink(this.#parts, this, socket);
    this.#controlPlanes.add(link);
    try {
      if (this.#closed) throw new SpaceError("link/closed", {});
      const { workerId, substrateName: substrate, podUid, capacity } = this.#parts;
      const { executions, keys, records, random } = this.#parts;
      await link.greet({
        workerId,
        substrate,
        podUid,
        capacity,
        freeSlots: Math.max(0, capacity - executions.count),
        endpoint,
        inventory: this.inventory(),
        bundleVersion: keys.version,
        feedPosition: this.#parts.records.feedPosition,
        store: records.beginSuccession(() => newSuccessionToken(random)),
      });
      await link.ended;
    } catch (error) {
      if (isSpaceError(error, "worker/superseded")) this.#refuseGateways();
      throw error;
    } finally {
      link.close();
      this.#controlPlanes.delete(link);
      if (this.#controlPlanes.size === 0) {
        this.#parts.reports.use(undefined);
        this.#parts.lease.use(undefined);
      }
    }
  }

  /** This store is older than the worker is, or a copy: by what it says nobody is served any more. */
  #refuseGateways(): void {
    this.#isSuperseded = true;
    this.#parts.audit.record("worker/superseded", { workerId: this.#parts.workerId });
    this.#parts.streams.cutAll(resetReason.closing);
    for (const link of [...this.#gateways, ...this.#peers]) link.close();
  }

  inventory(): WorkerInventory {
    return inventoryOf(this.#parts);
  }

  stats(): WorkerStats {
    const { counters, streams, executions, bridge, keys, lease } = this.#parts;
    return {
      ...counters,
      admission: this.#admissionName,
      openStreams: streams.size,
      executions: executions.count,
      bridgeConnected: bridge.connected,
      bundleVersion: keys.version,
      leased: lease.held,
    };
  }

  async close(how: "stopAll" | "leave"): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#parts.lease.close();
    this.#parts.streams.cutAll(resetReason.closing);
    for (const link of [...this.#controlPlanes]) link.close();
    await this.#commandsEnded();
    await nextTurn(); // the links write at the end of a turn: what was reset just now is said before they end
    for (const link of [...this.#gateways, ...this.#peers]) link.close();
    for (const chunks of [...this.#parts.reading]) chunks.close();
    this.#parts.handOvers.clear();
    this.#parts.bridge.close();
    await this.#parts.substrate.close(how);
    if (how === "leave") return;
    for (const { identity } of this.#parts.executions.all()) {
      const activationId = identity.activation.id;
      this.#parts.executions.forget(activationId);
      this.#parts.audit.record("execution/stopped", { activationId, reason: "the worker stops" });
    }
  }
  async #commandsEnded(): Promise<void> {
    const { queue, clock, limits } = this.#parts;
    const late = Promise.withResolvers<void>();
    const cancel = clock.after(limits.closeWaitMs, late.resolve);
    await Promise.race([queue.idle(), late.promise]);
    cancel();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
