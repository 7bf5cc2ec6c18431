// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { TenantKeyring } from "@space/model";
import type { ControlNode } from "./control-node.ts";
import type { GatewayNode } from "./gateway-node.ts";
import type { SimByteStore } from "./sim-byte-store.ts";
import type { WorkerNode } from "./worker-node.ts";
import type { WorldPorts } from "./world-ports.ts";

export interface ChaosTargets {
  readonly controls: readonly ControlNode[];
  readonly gateways: readonly GatewayNode[];
  readonly workers: readonly WorkerNode[];
  readonly objects: SimByteStore;
  readonly tenantKeys: TenantKeyring;
}

export type StrikeArea = "keys" | "crashes" | "network" | "stores" | "machines";

/** One kind of fault that can be thrown at a world. */
export interface Strike {
  readonly area: StrikeArea;
  /** How often in one round of all strikes. */
  readonly weight: number;
  readonly strike: () => void;
}

/** What can be done to these. */
export function strikesOn(targets: ChaosTargets, ports: WorldPorts): readonly Strike[] {
  const strikes: readonly (readonly [StrikeArea, number, (on: ChaosTargets, with_: WorldPorts) => void])[] = [
    ["keys", 4, changeKeys],
    ["keys", 1, rotateTenantKey],
    ["crashes", 2, crashGateway],
    ["crashes", 2, crashWorker],
    ["crashes", 5, powerOff],
    ["crashes", 2, crashControl],
    ["crashes", 3, stopControl],
    ["crashes", 3, crashInsideAWrite],
    ["machines", 2, exitGuest],
    ["machines", 2, troubleMachine],
    ["network", 9, breakLinks],
    ["network", 4, partition],
    ["network", 2, cutOff],
    ["stores", 5, failStore],
    ["stores", 6, damageObjects],
  ];
  return strikes.map(([area, weight, strike]) => ({ area, weight, strike: () => strike(targets, ports) }));
}

function downMs({ random }: WorldPorts): number {
  return random.chance(0.7) ? random.between(50, 3000) : random.between(3000, 90_000);
}

function crashGateway({ gateways }: ChaosTargets, ports: WorldPorts): void {
  const { random, loop, faults, trace } = ports;
  const gateway = random.pick(gateways);
  trace(() => `crash ${gateway.host}`);
  gateway.crash();
  faults.landed("crash-gateway");
  loop.after(downMs(ports), undefined, () => gateway.start());
}

function crashWorker({ workers }: ChaosTargets, ports: WorldPorts): void {
  const { random, loop, faults, trace } = ports;
  const worker = random.pick(workers);
  const forMs = downMs(ports);
  trace(() => `crash ${worker.host} for ${forMs | 0}`);
  worker.crash();
  faults.landed("crash-worker");
  loop.after(forMs, undefined, () => worker.boot());
}

/** Sometimes two hosts lose their power, and come back with each other's address; a pod mostly comes back as another. */
function powerOff({ workers }: ChaosTargets, ports: WorldPorts): void {
  const { random, loop, faults, trace } = ports;
  const forMs = downMs(ports);
  const worker = random.pick(workers);
  const other = random.pick(workers);
  trace(() => `power off ${worker.host}${other === worker ? "" : `, address with ${other.host}`}`);
  worker.powerOff();
  if (worker.isPod && random.chance(0.8)) worker.replacePod();
  faults.landed("crash-worker-host");
  if (other !== worker && random.chance(0.5)) {
    other.powerOff();
    [worker.address, other.address] = [other.address, worker.address];
    loop.after(forMs / 2, undefined, () => other.boot());
  }
  loop.after(forMs, undefined, () => worker.boot());
}

function crashControl({ controls }: ChaosTargets, ports: WorldPorts): void {
  const { random, loop, faults, trace } = ports;
  const control = random.pick(controls);
  trace(() => `crash ${control.host}`);
  control.crash();
  faults.landed("crash-control-plane");
  loop.after(Math.min(downMs(ports), 10_000), undefined, () => control.start());
}

/**
 * In the midst of the next transition that it drives a replica stands still, its workers mostly lose it and go to another
 * one, and it wakes up in the belief that it drives what it drove.
 */
function stopControl({ controls, workers }: ChaosTargets, ports: WorldPorts): void {
  const { random, loop, network, trace } = ports;
  const control = controls.reduce((best, other) => (other.workers > best.workers ? other : best));
  const forMs = random.chance(0.3) ? random.between(500, 5000) : random.between(5000, 60_000);
  control.whenItClaims = () => {
    trace(() => `stop ${control.host} for ${forMs | 0}`);
    control.stop(forMs);
    for (const { host } of random.chance(0.8) ? workers : [])
      loop.after(random.between(0, 1500), undefined, () => network.breakLinks(host, control.host));
  };
}

function crashInsideAWrite({ workers }: ChaosTargets, { random, trace }: WorldPorts): void {
  const worker = random.pick(workers);
  worker.nextWrite = random.pick(["crash-before", "crash-after"] as const);
  trace(() => `${worker.host} will ${worker.nextWrite} its next write`);
}

function exitGuest({ workers }: ChaosTargets, { random, faults, trace }: WorldPorts): void {
  const busy = workers.filter(({ machine }) => machine.processes.size > 0);
  if (busy.length === 0) return;
  const { machine, host, owner } = random.pick(busy);
  const process = random.pick([...machine.processes.values()]);
  trace(() => `process ${process.uid} exits on ${host}`);
  faults.landed("guest-exit");
  machine.exit(process, owner);
}

/** For a while the driver of one host fails, is slow, or both. */
function troubleMachine({ workers }: ChaosTargets, { random, loop, trace }: WorldPorts): void {
  const { machine, host } = random.pick(workers);
  const trouble = {
    failChance: random.between(0, 0.5),
    lateChance: random.between(0, 0.3),
    lateMs: random.pick([2_000, 20_000, 150_000]),
  };
  trace(() => `trouble of the driver on ${host}`);
  machine.trouble = trouble;
  loop.after(random.between(500, 8000), undefined, () => {
    if (machine.trouble === trouble) machine.trouble = undefined;
  });
}

function breakLinks(targets: ChaosTargets, { random, network, trace }: WorldPorts): void {
  const [a, b] = twoHosts(targets, random);
  if (a === b) return;
  trace(() => `break ${a} ${b}`);
  network.breakLinks(a, b);
}

function partition(targets: ChaosTargets, { random, network, trace }: WorldPorts): void {
  const [a, b] = twoHosts(targets, random);
  if (a === b) return;
  const forMs = random.chance(0.7) ? random.between(100, 8000) : random.between(8000, 120_000);
  trace(() => `partition ${a} ${b} for ${forMs | 0}`);
  network.partition(a, b, forMs);
}

/** No replica hears a worker any more, for longer than its lease most of the time; gateways do. */
function cutOff({ controls, workers }: ChaosTargets, { random, network, trace }: WorldPorts): void {
  const { host } = random.pick(workers);
  const forMs = random.between(5000, 90_000);
  trace(() => `cut ${host} off for ${forMs | 0}`);
  for (const control of controls) network.partition(host, control.host, forMs);
}

/** A gateway and a worker, or any two. */
function twoHosts(
  { controls, gateways, workers }: ChaosTargets,
  random: WorldPorts["random"],
): readonly [string, string] {
  if (random.chance(0.5)) return [random.pick(gateways).host, random.pick(workers).host];
  const hosts = [...controls, ...gateways, ...workers].map(({ host }) => host);
  return [random.pick(hosts), random.pick(hosts)];
}

/** Somebody rotates the signing keys, or wants one gone at once. */
function changeKeys({ controls }: ChaosTargets, { random, faults, trace }: WorldPorts): void {
  random.pick(controls).inside(({ keys }) => {
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

/** What a tenant pauses from now on is sealed with another key. */
function rotateTenantKey({ tenantKeys }: ChaosTargets, { faults, trace, loop }: WorldPorts): void {
  loop.soon(undefined, () => {
    void tenantKeys.tenants().then(async ([tenantId]) => {
      if (tenantId === undefined) return;
      const { keyId } = await tenantKeys.rotate(tenantId);
      trace(() => `rotate the tenant's key to ${keyId}`);
      faults.landed("tenant-key-rotation");
    });
  });
}

function failStore({ controls }: ChaosTargets, { random, loop }: WorldPorts): void {
  const control = random.pick(controls);
  control.storeFailChance = 0.2;
  loop.after(random.between(100, 2000), undefined, () => {
    control.storeFailChance = 0;
  });
}

/** Some of what was stored last is altered or gone, until somebody has put it right. */
function damageObjects({ objects }: ChaosTargets, { random, trace }: WorldPorts): void {
  const damaged = objects.damage(random.between(1000, 20_000));
  trace(() => `damage to ${damaged} objects`);
}
