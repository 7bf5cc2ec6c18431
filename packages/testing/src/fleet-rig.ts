// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { type Duplex, duplexPair } from "node:stream";
import type { TestContext } from "node:test";
import type { ControlLimits } from "@space/control-plane";
import { type RouteEntry, type SandboxId, type Secret, SpaceError, type WorkerId } from "@space/model";
import { ControlRig } from "./control-rig.ts";
import { settle } from "./virtual-clock.ts";
import { verdictOf, WorkerRig } from "./worker-rig.ts";

/** Where both workers say that gateways reach them. */
export const endpoint = { host: "127.0.0.1", port: 7000 };
/** Turns of the event loop after which everything has passed over the links. */
export const turns = 400;

/** A control plane and two real workers, each behind a link. */
export class Fleet {
  readonly rig: ControlRig;
  readonly a: WorkerRig;
  readonly b: WorkerRig;
  readonly #sockets = new Map<WorkerRig, Duplex>();

  private constructor(rig: ControlRig) {
    this.rig = rig;
    this.a = new WorkerRig("worker a", rig.store);
    this.b = new WorkerRig("worker b", rig.store);
  }

  static async open(
    context: TestContext,
    limits: Partial<ControlLimits> = {},
    directMoves = false,
  ): Promise<Fleet> {
    const { rig } = await ControlRig.open(context, { workers: 0, limits, directMoves });
    const fleet = new Fleet(rig);
    for (const side of [fleet.a, fleet.b]) {
      await fleet.boot(side);
      await fleet.dial(side);
    }
    return fleet;
  }

  async boot(side: WorkerRig): Promise<void> {
    side.disk.bundle ??= { version: 1, token: await this.rig.bundle() };
    await side.boot({
      worker: { rootPublicKey: this.rig.root.publicKey },
      ports: { peers: { dial: async ({ workerId }) => this.#meet(side, workerId) } },
    });
  }

  /** One worker reaches the other; TLS would prove both ids. */
  #meet(side: WorkerRig, workerId: WorkerId): Duplex {
    const [near, far] = duplexPair();
    const other = [this.a, this.b].find((one) => one.workerId === workerId);
    if (other === undefined) throw new SpaceError("endpoint/mismatch", { problem: "another component" });
    other.worker.acceptPeer(far, side.workerId);
    return near;
  }

  /** The worker dials the control plane; TLS would prove its id. */
  async dial(side: WorkerRig): Promise<void> {
    const [near, far] = duplexPair();
    this.#sockets.set(side, far);
    this.rig.control.accept(far, side.workerId);
    void side.worker.serveControlPlane(near, endpoint).catch(() => undefined);
    await settle(turns);
  }

  /** The daemon is killed and starts again. */
  async reboot(side: WorkerRig): Promise<void> {
    this.cut(side);
    side.kill();
    await this.boot(side);
    await this.dial(side);
  }

  cut(side: WorkerRig): void {
    this.#sockets.get(side)?.destroy();
  }

  processes(): readonly number[] {
    return [this.a.machine.processes.size, this.b.machine.processes.size];
  }

  async route(sandboxId: SandboxId, token: Secret<string>): Promise<RouteEntry> {
    const answer = await this.rig.control.routes.resolve({
      sandboxId,
      credential: { kind: "access-token", token },
      wanted: { purpose: "control", scope: "files:read" },
      presenter: this.a.presenter,
    });
    assert.equal(answer.kind, "entry");
    return answer.entry;
  }

  async verdict(side: WorkerRig, { route, capability }: RouteEntry): Promise<string> {
    return verdictOf(await side.ask(route.identity, { capability }));
  }
}
