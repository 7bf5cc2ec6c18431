// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { type FeedEntry, SpaceError, type WorkerId } from "@space/model";
import { snapshotStore } from "@space/snapshot";
import { createWorker, type Worker } from "@space/worker";
import type { ControlNode } from "./control-node.ts";
import { Crashed, Incarnation } from "./event-loop.ts";
import { handedIn } from "./handed-json.ts";
import { SimBridge } from "./sim-bridge.ts";
import type { SimByteStore } from "./sim-byte-store.ts";
import { SimClock } from "./sim-clock.ts";
import { SimDisk, SimWorkerStore, type WriteFate } from "./sim-disk.ts";
import { type MachineManners, SimMachine, SimSubstrate } from "./sim-machine.ts";
import type { SimSocket, Tap } from "./sim-socket.ts";
import { bridgeTap } from "./taps.ts";
import { type Addresses, silentAudit, type WorldPorts } from "./world-ports.ts";

export interface WorkerNodeOptions {
  readonly host: string;
  readonly workerId: WorkerId;
  readonly capacity: number;
  /** Whether this worker is a pod. */
  readonly isPod: boolean;
  readonly root: KeyObject;
  readonly controls: readonly ControlNode[];
  readonly objects: SimByteStore;
  readonly addresses: Addresses;
  readonly manners: MachineManners;
  readonly uids: () => number;
  /** Told of every certificate and retirement that comes here. */
  readonly onCarried: (kind: "install" | "retire", token: string) => void;
}

const redialMs = 800;
/** Of what a worker hears, how much somebody on the way keeps to present it again. */
const carriedEvery = 3;

/** One worker's host: its disk, its processes, its bridge, and the daemon that comes and goes. */
export class WorkerNode {
  readonly host: string;
  readonly workerId: WorkerId;
  readonly disk = new SimDisk();
  readonly machine: SimMachine;
  readonly #options: WorkerNodeOptions;
  readonly #ports: WorldPorts;
  #bridgeOwner: Incarnation;
  #bridge: SimBridge;
  #owner: Incarnation | undefined;
  #worker: Worker | undefined;
  /** Where its node-api listens now. */
  address: { readonly host: string; readonly port: number };
  /** the pod that was here before. */
  earlierPod: string | undefined;
  #pods = 1;
  /** What becomes of the next write, once. */
  nextWrite: WriteFate = "made";

  constructor(options: WorkerNodeOptions, ports: WorldPorts, address: WorkerNode["address"]) {
    const { host, uids, manners } = options;
    const { loop, oracle } = ports;
    this.host = host;
    this.workerId = options.workerId;
    this.#options = options;
    this.#ports = ports;
    this.address = address;
    const clock = new SimClock(loop, new Incarnation(host), ports.clockErrors(host));
    const trouble = ports.random.child(`${host} driver`);
    const chance = (probability: number): boolean => trouble.chance(probability);
    this.machine = new SimMachine(host, { loop, watcher: oracle, manners, uids, clock, chance });
    if (options.isPod) this.machine.podUid = `${host}-1`;
    this.#bridgeOwner = new Incarnation(`${host} bridge`);
    this.#bridge = this.#newBridge();
  }

  get isPod(): boolean {
    return this.#options.isPod;
  }

  /** once its processes have ended: another pod, with this one's address and store. */
  replacePod(): void {
    const held = [...this.disk.contents.records.values()];
    if (held.some(({ state }) => state === "installed")) this.#ports.faults.landed("pod-replacement");
    this.#pods += 1;
    this.earlierPod = this.machine.podUid;
    this.machine.podUid = `${this.host}-${this.#pods}`;
  }

  get worker(): Worker | undefined {
    return this.#worker;
  }

  get owner(): Incarnation | undefined {
    return this.#owner;
  }

  boot(): void {
    if (this.#owner !== undefined) return;
    const { loop, oracle, faults } = this.#ports;
    const owner = new Incarnation(this.host);
    this.#owner = owner;
    loop.soon(owner, () => {
      this.#create(owner).then(
        (worker) => {
          this.#worker = worker;
          if (this.disk.contents.records.size > 0) faults.landed("restart-from-disk");
          this.#listen(owner, worker);
          void this.#serve(owner, worker);
        },
        (error: unknown) => {
          if (error instanceof Crashed) return;
          if (!(error instanceof SpaceError))
            oracle.violate("no component fails by a bug", `${this.host}: ${String(error)}`);
          this.#stop("process");
          loop.after(redialMs, undefined, () => this.boot());
        },
      );
    });
  }

  /** Ends the daemon as `kill -9` does: its processes and its bridge go on. */
  crash(): void {
    this.#stop("process");
  }

  /** The whole host loses its power. */
  powerOff(): void {
    const { oracle } = this.#ports;
    this.#stop("host");
    this.#bridgeOwner.alive = false;
    this.#ports.network.drop(this.#bridgeOwner, "host");
    this.machine.powerOff();
    this.disk.loseUnsynced();
    oracle.receivers.powerLost(this.workerId, (sandboxId) => this.disk.contents.records.get(sandboxId));
    this.#bridgeOwner = new Incarnation(`${this.host} bridge`);
    this.#bridge = this.#newBridge();
  }

  #carriedTap(): Tap {
    const { onCarried } = this.#options;
    let arrivals = 0;
    return {
      sent: () => undefined,
      arrived: (bytes) => {
        arrivals += 1;
        if (arrivals % carriedEvery > 0) return;
        const text = bytes.toString("latin1");
        for (const entry of entriesIn(text)) {
          if (entry.kind === "install") onCarried("install", entry.certificate);
          if (entry.kind === "retire") onCarried("retire", entry.retirement);
        }
        const installed = /"certificate":"([^"]+)"/.exec(text)?.[1];
        const retired = /"retirement":"([^"]+)"/.exec(text)?.[1];
        if (installed !== undefined) onCarried("install", installed);
        if (retired !== undefined) onCarried("retire", retired);
      },
    };
  }

  #newBridge(): SimBridge {
    const { loop, random, oracle } = this.#ports;
    return new SimBridge({
      machine: this.machine,
      loop,
      owner: this.#bridgeOwner,
      random: random.child("bridge"),
      watcher: oracle,
    });
  }

  #stop(how: "process" | "host"): void {
    const owner = this.#owner;
    if (owner === undefined) return;
    owner.alive = false;
    this.#owner = undefined;
    this.#worker = undefined;
    this.disk.contents.inUse = false;
    this.machine.onExit = undefined;
    const { addresses } = this.#options;
    for (const [name, listener] of addresses) if (listener.owner === owner) addresses.delete(name);
    this.#ports.network.drop(owner, how);
  }

  #create(owner: Incarnation): Promise<Worker> {
    const { loop, random, clockErrors, oracle, faults } = this.#ports;
    const { workerId, capacity, root, objects } = this.#options;
    const { podUid } = this.machine;
    const records = new SimWorkerStore(this.disk, {
      owner,
      fateOf: () => this.#fate(),
      crash: () => {
        faults.landed("crash-inside-a-write");
        this.crash();
        loop.after(random.between(100, 3000), undefined, () => this.boot());
      },
      onBundle: (token) => oracle.receivers.bundleTaken(this.host, token),
      onRecord: (before, after) => {
        oracle.receivers.recordChanged(this.host, before, after);
        oracle.lifecycle.recordChanged(this.host, before, after);
      },
    });
    return createWorker(
      { workerId, capacity, rootPublicKey: root, ...(podUid === undefined ? {} : { podUid }) },
      {
        records,
        substrate: new SimSubstrate(this.machine, owner),
        snapshots: snapshotStore({ store: objects, random: random.child(`sealing of ${this.host}`) }),
        host: { connect: async () => this.#connectBridge(owner) },
        clock: new SimClock(loop, owner, clockErrors(this.host)),
        random: random.child(this.host),
        audit: silentAudit,
      },
    );
  }

  #fate(): WriteFate {
    const fate = this.nextWrite;
    this.nextWrite = "made";
    return fate;
  }

  #connectBridge(owner: Incarnation) {
    const { network, oracle } = this.#ports;
    const tap = bridgeTap(oracle, this.host, this.disk);
    const [near, far] = network.connect(
      { host: this.host, owner, tap },
      { host: this.host, owner: this.#bridgeOwner },
    );
    this.#bridge.accept(far);
    return near.asDuplex();
  }

  #listen(owner: Incarnation, worker: Worker): void {
    const { host, port } = this.address;
    this.#options.addresses.set(`${host}:${port}`, {
      host: this.host,
      workerId: this.workerId,
      owner,
      accept: (socket: SimSocket, presenter: string) => worker.acceptGateway(socket.asDuplex(), presenter),
    });
  }

  /** Dials the replicas of the control plane in turn: it hears one at a time, and no word of one that it has left. */
  async #serve(owner: Incarnation, worker: Worker): Promise<void> {
    const { loop, network } = this.#ports;
    const { controls } = this.#options;
    for (let dials = 0; ; dials += 1) {
      const control = controls[dials % controls.length];
      if (control?.isUp === true && !network.areApart(this.host, control.host)) {
        const [near, far] = network.connect(
          { host: this.host, owner, tap: this.#carriedTap() },
          control.end(),
        );
        loop.soon(far.owner, () => control.acceptWorker(far, this.workerId)); // before anything comes over it
        try {
          await worker.serveControlPlane(near.asDuplex(), this.address);
        } catch {
          // Dialled again, as the real daemon does.
        }
      }
      await loop.sleep(redialMs, owner);
    }
  }
}

/** What the control plane's feed says in a text, where it travels as a value. */
function entriesIn(text: string): FeedEntry[] {
  return handedIn(text).flatMap((value) => {
    const isTold = typeof value === "object" && value !== null && "entry" in value;
    return isTold ? [value.entry as FeedEntry] : []; // cast: the feed's own form
  });
}
