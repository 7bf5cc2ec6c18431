// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ControlNode } from "./control-node.ts";
import type { GatewayNode } from "./gateway-node.ts";
import type { WorkerNode } from "./worker-node.ts";
import type { WorldPorts } from "./world-ports.ts";

export interface ChaosTargets {
  readonly controls: readonly ControlNode[];
  readonly gateways: readonly GatewayNode[];
  readonly workers: readonly WorkerNode[];
}

/** Mean time between two faults, and which kinds. */
export interface ChaosPlan {
  readonly everyMs: number;
  readonly crashes: boolean;
  readonly network: boolean;
  readonly stores: boolean;
}

/** Throws faults at a world, at random times, until it is told to stop. */
export class Chaos {
  readonly #plan: ChaosPlan;
  readonly #targets: ChaosTargets;
  readonly #ports: WorldPorts;
  #stopped = false;

  constructor(plan: ChaosPlan, targets: ChaosTargets, ports: WorldPorts) {
    this.#plan = plan;
    this.#targets = targets;
    this.#ports = ports;
  }

  start(): void {
    const { loop, random } = this.#ports;
    if (this.#stopped || this.#plan.everyMs === Number.POSITIVE_INFINITY) return;
    loop.after(random.between(0, 2 * this.#plan.everyMs), undefined, () => {
      if (!this.#stopped) this.#strike();
      this.start();
    });
  }

  /** No new fault from now on. */
  stop(): void {
    this.#stopped = true;
    for (const control of this.#targets.controls) control.storeFailChance = 0;
  }

  #strike(): void {
    const { random } = this.#ports;
    const { crashes, network, stores } = this.#plan;
    const possible: (() => void)[] = [() => this.#keys()];
    if (crashes) possible.push(() => this.#crash());
    if (network) possible.push(() => this.#network());
    if (stores) possible.push(() => this.#store());
    if (possible.length > 0) random.pick(possible)();
  }

  #crash(): void {
    const { random, loop, faults, trace } = this.#ports;
    const { controls, gateways, workers } = this.#targets;
    const downMs = random.chance(0.7) ? random.between(50, 3000) : random.between(3000, 90_000);
    const fraction = random.fraction();
    if (fraction < 0.2) {
      const gateway = random.pick(gateways);
      trace(() => `crash ${gateway.host}`);
      gateway.crash();
      faults.landed("crash-gateway");
      loop.after(downMs, undefined, () => gateway.start());
    } else if (fraction < 0.4) {
      const worker = random.pick(workers);
      trace(() => `crash ${worker.host} for ${downMs | 0}`);
      worker.crash();
      faults.landed("crash-worker");
      loop.after(downMs, undefined, () => worker.boot());
    } else if (fraction < 0.5) this.#powerOff(downMs);
    else if (fraction < 0.65) {
      const control = random.pick(controls);
      trace(() => `crash ${control.host}`);
      control.crash();
      faults.landed("crash-control-plane");
      loop.after(Math.min(downMs, 10_000), undefined, () => control.start());
    } else if (fraction < 0.9) {
      const worker = random.pick(workers);
      worker.nextWrite = random.pick(["crash-before", "crash-after"] as const);
      trace(() => `${worker.host} will ${worker.nextWrite} its next write`);
    } else {
      const worker = random.pick(workers);
      const [process] = [...worker.machine.processes.values()];
      if (process === undefined) return;
      trace(() => `process ${process.uid} exits on ${worker.host}`);
      faults.landed("guest-exit");
      worker.machine.exit(process, worker.owner);
    }
  }

  /** Sometimes two hosts lose their power, and come back with each other's address. */
  #powerOff(downMs: number): void {
    const { random, loop, faults, trace } = this.#ports;
    const worker = random.pick(this.#targets.workers);
    const other = random.pick(this.#targets.workers);
    trace(() => `power off ${worker.host}${other === worker ? "" : `, address with ${other.host}`}`);
    worker.powerOff();
    faults.landed("crash-worker-host");
    if (other !== worker && random.chance(0.5)) {
      other.powerOff();
      [worker.address, other.address] = [other.address, worker.address];
      loop.after(downMs / 2, undefined, () => other.boot());
    }
    loop.after(downMs, undefined, () => worker.boot());
  }

  #network(): void {
    const { random, network, trace } = this.#ports;
    const { controls, gateways, workers } = this.#targets;
    const hosts = [...controls, ...gateways, ...workers].map(({ host }) => host);
    const isPath = random.chance(0.5);
    const a = isPath ? random.pick(gateways).host : random.pick(hosts);
    const b = isPath ? random.pick(workers).host : random.pick(hosts);
    if (a === b) return;
    if (random.chance(isPath ? 0.8 : 0.5)) {
      trace(() => `break ${a} ${b}`);
      network.breakLinks(a, b);
      return;
    }
    const forMs = random.chance(0.7) ? random.between(100, 8000) : random.between(8000, 120_000);
    trace(() => `partition ${a} ${b} for ${forMs | 0}`);
    network.partition(a, b, forMs);
  }

  /** Somebody rotates the signing keys, or wants one gone at once. */
  #keys(): void {
    const { random, faults, trace } = this.#ports;
    if (!random.chance(0.3)) return;
    random.pick(this.#targets.controls).inside(({ keys }) => {
      const ignore = (): void => undefined;
      if (random.chance(0.6)) {
        trace(() => "rotate keys");
        keys.rotate().then(() => faults.landed("key-rotation"), ignore);
        return;
      }
      const alive = keys.view().keys.filter(({ state }) => state === "signing" || state === "retiring");
      const [first] = alive;
      if (first === undefined) return;
      const { kid } = random.chance(0.5) ? first : random.pick(alive);
      trace(() => `revoke key ${kid}`);
      keys.revoke(kid).then(() => faults.landed("key-revocation"), ignore);
    });
  }

  #store(): void {
    const { random, loop } = this.#ports;
    const control = random.pick(this.#targets.controls);
    control.storeFailChance = 0.2;
    loop.after(random.between(100, 2000), undefined, () => {
      control.storeFailChance = 0;
    });
  }
}
