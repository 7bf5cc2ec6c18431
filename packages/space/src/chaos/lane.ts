// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";
import { systemClock } from "../host/system-clock.ts";
import { ChaosSandbox, lifeSeconds } from "./chaos-sandbox.ts";
import type { Dice } from "./dice.ts";
import type { Door } from "./door.ts";
import { Ledger } from "./ledger.ts";
import type { Stage } from "./stage.ts";

const connectedSchema = v.object({ sandboxID: v.string(), envdAccessToken: v.string() });
const forkedSchema = v.array(
  v.union([v.object({ sandbox: connectedSchema }), v.object({ error: v.looseObject({}) })]),
);
const snapshotSchema = v.object({ snapshotID: v.string() });

const retryMs = 300;
const repeatLimitMs = 180_000;

const lifeWeights = { pause: 6, move: 6, fork: 2, snapshot: 1, replace: 2 } as const;
const dataWeights = { write: 10, "read all": 4, download: 4, follow: 2 } as const;

/** One place in which a sandbox lives after the other, with two who act at once: its owner, and a program's client. */
export class Lane {
  readonly #stage: Stage;
  readonly #life: Dice;
  readonly #data: Dice;
  readonly #door: Door;
  readonly #name: string;
  #sandbox: ChaosSandbox | undefined;
  #made = 0;

  constructor(stage: Stage, name: string, dice: (part: string) => Dice) {
    this.#stage = stage;
    this.#name = name;
    this.#life = dice(`${name} life`);
    this.#data = dice(`${name} data`);
    this.#door = stage.open();
  }

  /** Acts until the run is over. */
  async run(): Promise<void> {
    await Promise.all([this.#live(), this.#use()]);
  }

  /** Looks at everything once more, and ends it. */
  async end(): Promise<void> {
    const sandbox = this.#sandbox;
    if (sandbox === undefined) return;
    await this.#verify(sandbox);
    await this.#kill(sandbox);
  }

  async #live(): Promise<void> {
    while (!this.#stage.isOver()) {
      this.#sandbox ??= await this.#create();
      const sandbox = this.#sandbox;
      if (sandbox === undefined) continue;
      await pause(this.#life.between(500, 4000));
      if (this.#stage.isOver()) return;
      sandbox.inspectCommand();
      sandbox.isMoving = true;
      const stays = await this.#step(sandbox);
      sandbox.isMoving = false;
      if (!stays && this.#sandbox === sandbox) await this.#replaceBy(undefined);
    }
  }

  async #use(): Promise<void> {
    while (!this.#stage.isOver()) {
      await pause(this.#data.between(50, 500));
      const sandbox = this.#sandbox;
      if (sandbox === undefined) continue;
      await this.#act(sandbox);
    }
  }

  async #act(sandbox: ChaosSandbox): Promise<void> {
    switch (this.#data.weighted(dataWeights)) {
      case "write":
        return sandbox.write();
      case "read all":
        await sandbox.readAll();
        return;
      case "download":
        return sandbox.download();
      case "follow":
        return sandbox.follow();
    }
  }

  /** One step in its life; false when it is gone, as it may be. */
  async #step(sandbox: ChaosSandbox): Promise<boolean> {
    if (!(await sandbox.settle())) return false;
    if (sandbox.state === "paused") return this.#resume(sandbox);
    switch (this.#life.weighted(lifeWeights)) {
      case "pause":
        return this.#saving(sandbox, "pause");
      case "move":
        return this.#saving(sandbox, "move");
      case "fork":
        return this.#fork(sandbox);
      case "snapshot":
        return this.#snapshot(sandbox);
      case "replace":
        await this.#replaceBy(await this.#create());
        return true;
    }
  }

  async #saving(sandbox: ChaosSandbox, operation: "pause" | "move"): Promise<boolean> {
    const { newest } = sandbox.ledger;
    const told = await this.#stage.tally.during(operation, () =>
      this.#door.api("POST", `${sandbox.path}/${operation}`, {}),
    );
    if (told.kind === "served") {
      sandbox.hasSnapshot = true;
      sandbox.ledger.saved(newest);
    }
    return sandbox.settle();
  }

  async #resume(sandbox: ChaosSandbox): Promise<boolean> {
    const workers = this.#stage.installation.workers;
    const chosen = this.#life.below(2) === 0 ? workers[this.#life.below(workers.length)] : undefined;
    const body = { timeout: lifeSeconds, ...(chosen === undefined ? {} : { workerID: chosen.workerId }) };
    await this.#stage.tally.during("resume", () =>
      this.#door.api("POST", `/v2${sandbox.path}/connect`, body),
    );
    return sandbox.settle();
  }

  /** The children have what their source had; then one of all goes on. */
  async #fork(sandbox: ChaosSandbox): Promise<boolean> {
    const { newest } = sandbox.ledger;
    const count = this.#life.between(1, 2);
    const body = { count, timeout: lifeSeconds };
    const told = await this.#stage.tally.during("fork", () =>
      this.#door.api("POST", `${sandbox.path}/fork`, body),
    );
    if (told.kind !== "served") {
      this.#stage.tally.forksUnknown += count;
      return sandbox.settle();
    }
    const children: ChaosSandbox[] = [];
    for (const one of v.parse(forkedSchema, JSON.parse(told.text)))
      if ("sandbox" in one) children.push(this.#child(sandbox, one.sandbox, newest));
      else this.#stage.tally.forksUnknown += 1;
    await this.#choose(children);
    return true;
  }

  async #snapshot(sandbox: ChaosSandbox): Promise<boolean> {
    const { newest } = sandbox.ledger;
    const told = await this.#stage.tally.during("snapshot", () =>
      this.#door.api("POST", `${sandbox.path}/snapshots`, {}),
    );
    if (told.kind !== "served") return sandbox.settle();
    const { snapshotID } = v.parse(snapshotSchema, JSON.parse(told.text));
    const made = await this.#begin("create from a snapshot", snapshotID);
    if (made !== undefined) await this.#choose([this.#child(sandbox, made, newest)]);
    await this.#repeat("delete a snapshot", (door) =>
      door.api("DELETE", `/templates/${encodeURIComponent(snapshotID)}`),
    );
    return true;
  }

  #child(source: ChaosSandbox, made: v.InferOutput<typeof connectedSchema>, newest: number): ChaosSandbox {
    const address = { sandboxId: made.sandboxID, accessToken: made.envdAccessToken };
    const child = new ChaosSandbox(address, source.ledger.forked(made.sandboxID, newest), this.#stage);
    this.#enterAny(child);
    return child;
  }

  /** Looks at each; one may take the place of the sandbox that is there, the others are ended. */
  async #choose(children: readonly ChaosSandbox[]): Promise<void> {
    const chosen = this.#life.below(children.length + 1);
    for (const [at, child] of children.entries()) {
      const isThere = await this.#verify(child);
      if (at === chosen && isThere) await this.#replaceBy(child);
      else await this.#kill(child);
    }
  }

  async #replaceBy(next: ChaosSandbox | undefined): Promise<void> {
    const before = this.#sandbox;
    this.#sandbox = next;
    if (before !== undefined) await this.#kill(before);
  }

  async #create(): Promise<ChaosSandbox | undefined> {
    const made = await this.#begin("create", "base");
    if (made === undefined) return undefined;
    const address = { sandboxId: made.sandboxID, accessToken: made.envdAccessToken };
    const ledger = new Ledger(this.#stage.run, address.sandboxId);
    const sandbox = new ChaosSandbox(address, ledger, this.#stage);
    this.#enterAny(sandbox);
    return sandbox;
  }

  /** Which worker has it is not known yet: a worker that stands still now may. */
  #enterAny(sandbox: ChaosSandbox): void {
    for (const window of this.#stage.windows) if (window.closedAtMs === undefined) sandbox.enter(window);
  }

  async #begin(
    operation: string,
    templateID: string,
  ): Promise<v.InferOutput<typeof connectedSchema> | undefined> {
    this.#made += 1;
    const key = `${this.#stage.run}-${this.#name}-${this.#made}`.replaceAll(" ", "-");
    const body = { templateID, timeout: lifeSeconds, metadata: { "space.auto-recover": "true" } };
    const told = await this.#repeat(operation, (door) => door.api("POST", "/sandboxes", body, key));
    return told === undefined ? undefined : v.parse(connectedSchema, JSON.parse(told));
  }

  /** Repeats it until it is served, or not to be had; resolves with what was served. */
  async #repeat(
    operation: string,
    ask: (door: Door) => ReturnType<Door["api"]>,
  ): Promise<string | undefined> {
    const untilMs = systemClock.monotonicMs() + repeatLimitMs;
    while (systemClock.monotonicMs() < untilMs) {
      const told = await this.#stage.tally.during(operation, () => ask(this.#door));
      if (told.kind === "served") return told.text;
      if (told.kind === "missing" || told.kind === "lost") return undefined;
      if (this.#stage.tally.isOver) return undefined;
      await pause(retryMs);
    }
    this.#stage.tally.violate({ kind: "never served", what: `${operation} in ${repeatLimitMs} ms` });
    return undefined;
  }

  /** Runs it, and reads all its files; false when it is gone, as it may be, or when that is a violation. */
  async #verify(sandbox: ChaosSandbox): Promise<boolean> {
    const untilMs = systemClock.monotonicMs() + repeatLimitMs;
    while (systemClock.monotonicMs() < untilMs) {
      if (this.#stage.tally.isOver || !(await sandbox.settle())) return false;
      if (sandbox.state === "paused") await this.#resume(sandbox);
      else if (await sandbox.readAll()) return true;
      sandbox.inspectCommand();
      await pause(retryMs);
    }
    sandbox.violate("never served", `its files, in ${repeatLimitMs} ms`);
    return false;
  }

  /** Ends it for good, and sees that it is. */
  async #kill(sandbox: ChaosSandbox): Promise<void> {
    sandbox.inspectCommand();
    sandbox.close();
    await this.#repeat("kill", (door) => door.api("DELETE", sandbox.path));
    const told = await this.#stage.tally.during("look at what was killed", () =>
      this.#door.api("GET", sandbox.path),
    );
    if (told.kind === "served" || told.kind === "lost")
      this.#stage.tally.violate({
        kind: "returned",
        what: `${sandbox.path} was killed, and answers ${told.kind}`,
      });
  }
}
