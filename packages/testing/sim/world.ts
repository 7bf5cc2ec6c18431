// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { newSigningKey } from "@space/capability";
import type { ControlLimits } from "@space/control-plane";
import { type ApiCaller, newWorkerId, type Random, type WorkerId } from "@space/model";
import { MemoryKeyWrapping, TenantKeys } from "@space/snapshot";
import { MemoryControlTables } from "../src/memory-control-tables.ts";
import { MemoryKeyVault, MemoryRootKey } from "../src/memory-keys.ts";
import { Chaos, type ChaosPlan } from "./chaos.ts";
import { ControlNode } from "./control-node.ts";
import { EventLoop, Incarnation } from "./event-loop.ts";
import { FaultCounts } from "./faults.ts";
import { GatewayNode } from "./gateway-node.ts";
import { handChunks } from "./handed-chunks.ts";
import { Life } from "./life.ts";
import { Network, type NetworkManners } from "./network.ts";
import { Oracle } from "./oracle.ts";
import { Prober } from "./prober.ts";
import { Rates } from "./rates.ts";
import { checkSettled } from "./settled.ts";
import { checkSnapshots } from "./settled-snapshots.ts";
import { SimByteStore } from "./sim-byte-store.ts";
import type { ClockError } from "./sim-clock.ts";
import { SimRandom } from "./sim-random.ts";
import { makeKeys } from "./stand-in-crypto.ts";
import type { StrikeArea } from "./strikes.ts";
import { WorkerNode } from "./worker-node.ts";
import type { Addresses, WorldPorts } from "./world-ports.ts";

export interface WorldOptions {
  readonly seed: string;
  /** Executions after which no new ones begin. */
  readonly executions: number;
  readonly realKeys: boolean;
  /** Something is broken on purpose: everything that may show it happens more often. */
  readonly hunting: boolean;
  /** Nothing is struck. */
  readonly calm: boolean;
  readonly trace?: (line: string) => void;
}

export interface WorldReport {
  readonly violations: Oracle["violations"];
  readonly executions: number;
  readonly faults: FaultCounts;
  readonly rates: Rates;
  readonly steps: number;
  readonly virtualMs: number;
  /** Mean time between two faults; infinite: it is never struck. */
  readonly struckEveryMs: number;
}

const controlLimits: Partial<ControlLimits> = {
  reaperTickMs: 1000,
  recoveryTickMs: 4000,
  collectTickMs: 15_000,
  tombstoneMs: 120_000,
};
/** Upkeep that finds nothing most of the time is cheaper than what it costs to look twice as often. */
const unhuntedLimits: Partial<ControlLimits> = {
  ...controlLimits,
  reaperTickMs: 4000,
  orderTickMs: 4000,
  leaseTickMs: 4000,
  keyTickMs: 6000,
  collectTickMs: 40_000,
};
/** No world goes on for longer, in true time. */
const longestMs = 3 * 3_600_000;
/** One world in so many has its clocks at the ends of what is allowed. */
const extremeClocksEvery = 5;
/** With every fault over, everything is true again by then. */
const settleMs = 400_000;
/** What the last change of a sandbox left without need is gone by then: within three of the collector's rounds. */
const collectedMs = 160_000;
/** How often the last of them may change after that. */
const latest = 20;
const livesAtOnce = 60;
const huntedLives = 12;
/** how long a caller's check counts where a mutant is to meet the end of one more often. */
const briefMs = 10_000;

/** A whole installation with its callers, in one virtual time: the real parts, on a network, disks and processes that fail. */
export class World {
  readonly loop = new EventLoop();
  readonly faults = new FaultCounts();
  readonly oracle = new Oracle(this.loop);
  readonly rates = new Rates();
  readonly tables = new MemoryControlTables();
  readonly random: SimRandom;
  readonly ports: WorldPorts;
  readonly controls: readonly ControlNode[];
  readonly gateways: readonly GatewayNode[];
  readonly workers: readonly WorkerNode[];
  readonly addresses: Addresses = new Map();
  readonly vault = new MemoryKeyVault();
  readonly prober: Prober;
  readonly objects: SimByteStore;
  readonly tenantKeys: TenantKeys;
  readonly #rootPublicKey: ReturnType<typeof newSigningKey>["publicKey"];
  readonly #options: WorldOptions;
  readonly #callers = new Incarnation("callers");
  #number = 0;
  #living = 0;
  #changedMs = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.random = new SimRandom(options.seed);
    const { loop, oracle, faults, random } = this;
    const keyRandom = random.child("keys");
    makeKeys({ real: options.realKeys, seed: () => keyRandom.bytes(32) });
    handChunks(!options.realKeys && !options.hunting);
    const network = new Network(mannersOf(random), { loop, random: random.child("network"), faults });
    const isExtreme = numberOf(options.seed) % extremeClocksEvery === 2;
    const errors = new Map<string, ClockError>();
    const clockErrors = (host: string): ClockError => {
      const known = errors.get(host) ?? clockErrorOf(random, faults, isExtreme);
      errors.set(host, known);
      return known;
    };
    const trace = (line: () => string): void => options.trace?.(`${loop.nowMs.toFixed(1)} ${line()}`);
    this.ports = { loop, network, oracle, faults, random, clockErrors, trace };
    oracle.onViolation = ({ statement, problem }) => trace(() => `VIOLATION ${statement}: ${problem}`);
    this.tables.onChange = (before, after) => {
      trace(
        () =>
          `row ${after.sandboxId} ${before?.state ?? "-"} -> ${after.state} generation ${after.generation}`,
      );
      oracle.rowChanged(before, after);
      this.#changedMs = loop.nowMs;
      if (after.claim === null || after.claim === before?.claim) return;
      const [owner] = after.claim.owner.split("/");
      this.controls.find(({ host }) => host === owner)?.claimed();
    };
    this.tables.onOrder = (effect, isConfirmed) => {
      if (effect.kind !== "retire") return;
      const { identity } = effect;
      if (!isConfirmed) return oracle.receivers.retirementOrdered(identity);
      const { workerId } = identity.placement;
      oracle.receivers.acknowledged(workerId, identity, oracle.recordOf(workerId, identity.sandboxId));
    };
    oracle.recordOf = (host, sandboxId) => this.#workerAt(host).disk.contents.records.get(sandboxId);
    oracle.receivers.onSlowKeys = () => faults.landed("slow-keys");
    loop.onBug = (error, owner) => {
      if (owner?.alive !== false)
        oracle.violate("no component fails by a bug", `${owner?.name}: ${stackOf(error)}`);
    };
    this.objects = new SimByteStore({ loop, faults, random: random.child("objects") });
    const wrapping = new MemoryKeyWrapping();
    this.tenantKeys = new TenantKeys({ store: this.objects, wrapping, random: random.child("operator") });
    const root = newSigningKey();
    const rootKey = new MemoryRootKey(root);
    this.#rootPublicKey = root.publicKey;
    const privateKeys = this.vault;
    const base = options.hunting ? controlLimits : unhuntedLimits;
    const isBrief = options.hunting && numberOf(options.seed) % 3 === 1;
    const authorisedMs = isBrief ? briefMs : oracle.gateways.authorisedMs;
    oracle.gateways.authorisedMs = authorisedMs;
    const limits = { ...base, claimMs: random.pick([20_000, 200_000]), authorisedMs };
    this.controls = ["cp1", "cp2"].map(
      (host) =>
        new ControlNode(
          { host, tables: this.tables, objects: this.objects, wrapping, rootKey, privateKeys, limits },
          this.ports,
        ),
    );
    oracle.lifecycle.onHandOver = () => faults.landed("replica-hand-over");
    this.workers = this.#makeWorkers(root, random);
    this.gateways = ["gw1", "gw2"].map(
      (host) =>
        new GatewayNode(
          {
            host,
            presenter: Buffer.from(random.bytes(32)).toString("base64url"),
            chooseReplica: (asked) => this.#choose(asked),
            controls: this.controls,
            root: root.publicKey,
            addresses: this.addresses,
            diskOf: (name) => this.#workerAt(name).disk,
          },
          this.ports,
        ),
    );
    this.prober = new Prober({
      ...this.ports,
      random: random.child("prober"),
      tables: this.tables,
      vault: this.vault,
      workers: this.workers,
      presenters: this.gateways.map(({ presenter }) => presenter),
      numbers: () => this.#nextNumber(),
      rates: this.rates,
      everyMs: options.hunting ? 400 : 3000,
    });
  }

  /** Lets everything happen. Must be called from no promise continuation. */
  run(): WorldReport {
    const { loop, random, oracle } = this;
    for (const node of this.controls) node.start();
    for (const node of this.workers) node.boot();
    for (const node of this.gateways) node.start();
    const plan = chaosOf(random, this.#options);
    const chaos = new Chaos(plan, this, this.ports);
    loop.after(4000, undefined, () => this.prober.start());
    const enough = (): boolean =>
      oracle.executionsBegun >= this.#options.executions || oracle.violations.length > 0;
    loop.after(3000, this.#callers, () => void this.#begin(() => !enough()));
    loop.after(4000, undefined, () => chaos.start());
    loop.run(loop.nowMs + longestMs, enough);
    chaos.stop();
    this.prober.stop();
    for (const node of this.controls) node.start();
    this.#settle();
    if (oracle.violations.length === 0) checkSettled(this);
    loop.after(
      0,
      undefined,
      () =>
        void checkSnapshots({
          ...this.ports,
          tables: this.tables,
          objects: this.objects,
          tenantKeys: this.tenantKeys,
          random: random.child("reader"),
          root: this.#rootPublicKey,
        }),
    );
    loop.run(loop.nowMs + 1000, () => oracle.violations.length > 0);
    for (const node of this.gateways) node.count(this.rates);
    return {
      violations: oracle.violations,
      executions: oracle.executionsBegun,
      faults: this.faults,
      rates: this.rates,
      steps: loop.steps,
      virtualMs: loop.nowMs,
      struckEveryMs: plan.everyMs,
    };
  }

  #settle(): void {
    const { loop, oracle } = this;
    const isOver = (): boolean => oracle.violations.length > 0;
    loop.run(loop.nowMs + settleMs, isOver);
    for (let at = 0; at < latest && !isOver() && loop.nowMs < this.#changedMs + collectedMs; at += 1)
      loop.run(this.#changedMs + collectedMs, isOver);
  }

  async #begin(goesOn: () => boolean): Promise<void> {
    const apiCaller = await this.#newTenant();
    const { random } = this;
    const next = (): void => {
      if (!goesOn() || this.#living >= (this.#options.hunting ? huntedLives : livesAtOnce)) return;
      this.#living += 1;
      const life = new Life({
        ...this.ports,
        random: random.child("life"),
        owner: this.#callers,
        gateways: this.gateways,
        chooseReplica: (asked) => this.#choose(asked),
        apiCaller,
        workerIds: this.workers.map(({ workerId }) => workerId),
        rates: this.rates,
        numbers: () => this.#nextNumber(),
        isBusy: this.#options.hunting,
        goesOn,
      });
      void life.live().then(() => {
        this.#living -= 1;
        this.loop.after(random.between(0, 2000), this.#callers, next);
      });
    };
    for (let at = 0; at < livesAtOnce; at += 1) this.loop.after(random.between(0, 5000), this.#callers, next);
  }

  /** Mostly the replica that has the workers, as whoever spreads calls over replicas would choose. */
  #choose(asked?: ControlNode): ControlNode {
    const { random } = this;
    const controls = this.controls.filter((control) => control !== asked);
    if (random.chance(0.1)) return random.pick(controls);
    return controls.reduce((best, other) => (other.workers > best.workers ? other : best));
  }

  #nextNumber(): number {
    this.#number += 1;
    return this.#number;
  }

  async #newTenant(): Promise<ApiCaller> {
    const administration = this.controls.find(({ isUp }) => isUp)?.control?.administration;
    if (administration === undefined) throw new TypeError("the control plane has not started");
    const tenantId = await administration.createTenant("callers");
    return { tenantId, keyId: "key_1" };
  }

  #workerAt(host: string): WorkerNode {
    const worker = this.workers.find((node) => node.host === host || node.workerId === host);
    if (worker === undefined) throw new TypeError("no such worker");
    return worker;
  }

  #makeWorkers(root: ReturnType<typeof newSigningKey>, random: Random & SimRandom): readonly WorkerNode[] {
    let uid = 0;
    const workerIds = Array.from({ length: 3 }, () => newWorkerId(random));
    const isPod = random.chance(0.7);
    const manners = {
      stepMs: () => random.between(0.2, random.chance(0.05) ? 800 : 10),
      fails: () => random.chance(0.002),
      onTrouble: () => this.faults.landed("substrate-failure"),
    };
    return ["wk1", "wk2", "wk3"].map(
      (host, at) =>
        new WorkerNode(
          {
            host,
            workerId: workerIds[at] as WorkerId, // cast: one for each host
            capacity: 40,
            isPod,
            root: root.publicKey,
            controls: this.controls,
            objects: this.objects,
            addresses: this.addresses,
            manners,
            onCarried: (kind, token) => this.prober.carried(workerIds[at] ?? "", kind, token),
            uids: () => {
              uid += 1;
              return uid;
            },
          },
          this.ports,
          { host: `10.0.0.${at + 1}`, port: 7000 },
        ),
    );
  }
}

function mannersOf(random: SimRandom): NetworkManners {
  const isBad = random.chance(0.3);
  return {
    latencyMs: random.between(0.2, isBad ? 20 : 2),
    slowChance: isBad ? 0.02 : 0.001,
    slowMs: isBad ? 3000 : 200,
    lossChance: isBad ? 0.02 : 0.0005,
    duplicateChance: isBad ? 0.02 : 0.0005,
  };
}

/** Within 15 s of each other, and within 3 % of true speed; in some worlds every clock is at one end or the other. */
function clockErrorOf(random: SimRandom, faults: FaultCounts, isExtreme: boolean): ClockError {
  if (!isExtreme && random.chance(0.3)) return { skewMs: 0, drift: 0 };
  faults.landed("clock-skew");
  if (isExtreme) return { skewMs: random.pick([-7500, 7500]), drift: random.pick([-0.03, 0.03]) };
  return { skewMs: random.between(-7500, 7500), drift: random.between(-0.03, 0.03) };
}

/** How often each area of faults is struck in a world. */
const areaChances: readonly (readonly [StrikeArea, number])[] = [
  ["keys", 1],
  ["crashes", 0.8],
  ["network", 0.8],
  ["stores", 0.6],
  ["machines", 0.8],
];

/** Which world of its run it is, as its name says. */
export function numberOf(seed: string): number {
  return Number(seed.slice(seed.lastIndexOf("/") + 1));
}

function chaosOf(random: SimRandom, { hunting, calm, seed }: WorldOptions): ChaosPlan {
  const never = Number.POSITIVE_INFINITY;
  const storms = hunting
    ? [2000, 8000, 60_000]
    : [1500, never, 24_000, 6000, never, never, 24_000, never, never];
  const everyMs = calm ? never : (storms[numberOf(seed) % storms.length] ?? never);
  const isWhole = everyMs === storms[0]; // one world in so many has everything, however short the run
  const areas = areaChances.filter(([, chance]) => isWhole || random.chance(chance));
  return { everyMs, areas: new Set(areas.map(([area]) => area)) };
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
