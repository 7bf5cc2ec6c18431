// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ControlLimits, type ControlPlane, openControlPlane } from "@space/control-plane";
import { type KeyWrapping, type RootKey, Secret, SpaceError, type WorkerId } from "@space/model";
import { ChunkCollector, snapshotStore, TenantKeys } from "@space/snapshot";
import { memoryControlStore, type StoreTiming } from "../src/memory-control-store.ts";
import type { MemoryControlTables } from "../src/memory-control-tables.ts";
import type { MemoryKeyVault } from "../src/memory-keys.ts";
import { Incarnation } from "./event-loop.ts";
import type { LinkEnd } from "./network.ts";
import type { SimByteStore } from "./sim-byte-store.ts";
import { SimClock } from "./sim-clock.ts";
import type { SimSocket } from "./sim-socket.ts";
import { silentAudit, type WorldPorts } from "./world-ports.ts";

export interface ControlNodeOptions {
  readonly host: string;
  readonly tables: MemoryControlTables;
  readonly objects: SimByteStore;
  readonly wrapping: KeyWrapping;
  readonly rootKey: RootKey;
  readonly privateKeys: MemoryKeyVault;
  readonly limits: Partial<ControlLimits>;
}

/** A chunk may be put aside that is younger than many a pause takes. */
const collectGraceMs = 100;
/** How often a store's answer is late enough for others to come between. */
const slowReadChance = 0.15;
/** How often something may happen between a write and its caller's hearing of it. */
const lateAnswerChance = 0.25;

/** One replica of the control plane on its host. */
export class ControlNode {
  readonly host: string;
  readonly #options: ControlNodeOptions;
  readonly #ports: WorldPorts;
  #run: { readonly owner: Incarnation; readonly control: ControlPlane } | undefined;
  #owner: Incarnation | undefined;
  readonly #waiting = new Set<() => void>();
  /** Chance that a write of the store fails, before or after it is made. */
  storeFailChance = 0;

  constructor(options: ControlNodeOptions, ports: WorldPorts) {
    this.host = options.host;
    this.#options = options;
    this.#ports = ports;
  }

  get control(): ControlPlane | undefined {
    return this.#run?.control;
  }

  get isUp(): boolean {
    return this.#owner !== undefined;
  }

  end(): LinkEnd {
    return { host: this.host, owner: this.#owner ?? new Incarnation("nobody") };
  }

  start(): void {
    if (this.#owner !== undefined) return;
    const { loop, oracle } = this.#ports;
    const owner = new Incarnation(this.host);
    this.#owner = owner;
    loop.soon(owner, () => {
      this.#open(owner).then(
        (control) => {
          this.#run = { owner, control };
        },
        (error: unknown) => {
          // The store failed just then: as a process that ends and is started again.
          if (!(error instanceof SpaceError) || error.code !== "store/failed")
            oracle.violate("no component fails by a bug", `control plane: ${String(error)}`);
          this.crash();
          loop.after(500, undefined, () => this.start());
        },
      );
    });
  }

  crash(): void {
    const owner = this.#owner;
    if (owner === undefined) return;
    owner.alive = false;
    this.#owner = undefined;
    this.#run = undefined;
    this.#ports.network.drop(owner, "process");
    for (const fail of this.#waiting) fail();
    this.#waiting.clear();
  }

  /** What is to be done to it a moment after its next claim, once. */
  whenItClaims: (() => void) | undefined;

  /** One of its claims is durable. */
  claimed(): void {
    const { loop, random } = this.#ports;
    const act = this.whenItClaims;
    this.whenItClaims = undefined;
    if (act !== undefined) loop.after(random.between(0, 15), undefined, act);
  }

  /** It stands still for so long, and then goes on as if nothing had been. */
  stop(forMs: number): void {
    const owner = this.#owner;
    if (owner !== undefined) owner.stoppedUntilMs = this.#ports.loop.nowMs + forMs;
  }

  /** The workers that this replica can give work to. */
  get workers(): number {
    return this.#run?.control.workers().length ?? 0;
  }

  acceptWorker(socket: SimSocket, workerId: WorkerId): void {
    if (this.#run === undefined) socket.destroy();
    else this.#run.control.accept(socket.asDuplex(), workerId);
  }

  /** In a turn of this replica, if it is up. */
  inside(action: (control: ControlPlane) => void): void {
    const run = this.#run;
    if (run !== undefined) this.#ports.loop.soon(run.owner, () => action(run.control));
  }

  /**
   * A call from elsewhere: the question and the answer travel, and may not arrive. Rejects with `link/closed` when the
   * process ends, or when nothing came by `limitMs`: the effect is then unknown.
   */
  call<T>(from: LinkEnd, limitMs: number, ask: (control: ControlPlane) => Promise<T>): Promise<T> {
    const { loop, network } = this.#ports;
    return new Promise<T>((resolve, reject) => {
      let isSettled = false;
      const settle = (action: () => void): void => {
        if (isSettled) return;
        isSettled = true;
        cancel();
        this.#waiting.delete(lost);
        if (loop.current === from.owner) action();
        else loop.soon(from.owner, action);
      };
      const lost = (): void => settle(() => reject(new SpaceError("link/closed", {})));
      const cancel = loop.after(limitMs, from.owner, lost);
      const run = this.#run;
      if (run === undefined) {
        loop.after(network.delayMs(), from.owner, lost);
        return;
      }
      this.#waiting.add(lost);
      const to = { host: this.host, owner: run.owner };
      const answer = (action: () => void): void => network.call({ from: to, to: from }, () => settle(action));
      network.call({ from, to }, () => {
        ask(run.control).then(
          (value) => answer(() => resolve(value)),
          (error: unknown) => answer(() => reject(error)),
        );
      });
    });
  }

  #open(owner: Incarnation): Promise<ControlPlane> {
    const { loop, random, clockErrors } = this.#ports;
    const { rootKey, privateKeys, limits, tables, objects, wrapping } = this.#options;
    const sealing = { store: objects, random: random.child(`sealing of ${this.host}`) };
    const clock = new SimClock(loop, owner, clockErrors(this.host));
    const timing = this.#timing(owner);
    const { sandboxes, installation, signingKeys, receivers, enrolments } = memoryControlStore(
      tables,
      clock,
      timing,
    );
    const tokenSecret = new Secret<Uint8Array>(new Uint8Array(32).fill(7));
    return openControlPlane(
      { issuer: "simulation", tokenSecret, limits, replica: this.host },
      {
        sandboxes,
        snapshots: snapshotStore(sealing),
        tenantKeys: new TenantKeys({ ...sealing, wrapping }),
        // By the store's own clock, as a chunk's age is.
        collector: (references) =>
          new ChunkCollector(
            { ...sealing, references, clock: { wallMs: () => loop.nowMs } },
            { graceMs: collectGraceMs },
          ),
        installation,
        signingKeys,
        receiverStore: receivers,
        enrolments,
        rootKey,
        privateKeys,
        clock,
        random: random.child(this.host),
        audit: silentAudit,
      },
    );
  }

  /** A write is durable, at times, some time before its caller hears of it. */
  #timing(owner: Incarnation): StoreTiming {
    const { loop, random, faults, oracle } = this.#ports;
    return {
      read: async (action) => {
        if (random.chance(slowReadChance)) await loop.sleep(random.between(0, 3), owner);
        return action();
      },
      write: <T>(action: () => T) =>
        new Promise<T>((resolve, reject) => {
          loop.after(random.between(0, 1), owner, () => {
            const isFailing = this.storeFailChance > 0 && random.chance(this.storeFailChance);
            const fail = (): void => reject(new SpaceError("store/failed", { step: "write" }));
            if (isFailing) faults.landed("store-failure");
            if (isFailing && random.chance(0.5)) return fail();
            let value: T;
            oracle.lifecycle.writer = this.host;
            try {
              value = action();
            } catch (error) {
              return reject(error);
            }
            const answer = (): void => (isFailing ? fail() : resolve(value));
            if (random.chance(lateAnswerChance)) loop.after(random.between(0, 2), owner, answer);
            else answer();
          });
        }),
    };
  }
}
