// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";
import type { SandboxAddress } from "../drill/caller.ts";
import { systemClock } from "../host/system-clock.ts";
import { CountingCommand } from "./counting-command.ts";
import type { Door } from "./door.ts";
import { parseSeen, readScript, saysWritten, writeScript } from "./guest-scripts.ts";
import { contentOf, type Ledger } from "./ledger.ts";
import type { LossWindow, Stage } from "./stage.ts";
import type { Told } from "./told.ts";

const detailSchema = v.object({
  state: v.picklist(["running", "paused"]),
  space: v.object({
    generation: v.string(),
    workerID: v.nullable(v.string()),
    recoveredFrom: v.nullable(v.string()),
  }),
});

export const lifeSeconds = 3600;
/** A sandbox that does not come to rest in so long is taken for gone. */
const settleLimitMs = 180_000;
const lookEveryMs = 250;

export type SandboxState = "running" | "paused";

/** One sandbox, what it must hold, and what was last seen of it. Its owner's view: nothing here looks behind the API. */
export class ChaosSandbox {
  readonly address: SandboxAddress;
  readonly ledger: Ledger;
  readonly #stage: Stage;
  readonly #door: Door;
  state: SandboxState = "running";
  /** The one that it runs on, or ran on last. */
  workerId = "";
  /** A pause or move was acknowledged: if it is lost, it can come back. */
  hasSnapshot = false;
  /** Its owner ends it, or has ended it: it answers nobody from now on. */
  isEnding = false;
  /** On its way somewhere, so that no worker can be ruled out. */
  isMoving = false;
  #generation = 1;
  #recoveredFrom: string | null = null;
  #window: LossWindow | undefined;
  #command: CountingCommand | undefined;
  #commands = 0;

  constructor(address: SandboxAddress, ledger: Ledger, stage: Stage) {
    this.address = address;
    this.ledger = ledger;
    this.#stage = stage;
    this.#door = stage.open();
    stage.sandboxes.add(this);
  }

  get path(): string {
    return `/sandboxes/${this.address.sandboxId}`;
  }

  get command(): CountingCommand | undefined {
    return this.#command;
  }

  /** From now on its worker may be given up. */
  enter(window: LossWindow): void {
    this.#window = window;
    this.ledger.openLoss();
  }

  violate(kind: string, what: string): void {
    if (!this.isEnding) this.#stage.tally.violate({ kind, what: `${this.address.sandboxId}: ${what}` });
  }

  /** Writes one file. */
  async write(): Promise<void> {
    const writing = this.ledger.begin(this.#generation);
    const told = await this.#ask("write", () => this.#door.run(this.address, writeScript(writing)));
    if (told.kind === "served" && saysWritten(told.text)) this.ledger.acknowledge(writing);
    else if (told.kind === "served")
      this.violate("torn answer", `a write was answered with ${JSON.stringify(told.text)}`);
    else if (told.kind === "again" && told.nothingHappened) this.ledger.refuse(writing);
    this.#judge(told);
  }

  /** Reads all files and compares them; resolves with whether they could be read. */
  async readAll(): Promise<boolean> {
    const window = this.#window;
    const isPast = window?.closedAtMs !== undefined && window.closedAtMs <= systemClock.monotonicMs();
    const told = await this.#ask("read all", () => this.#door.run(this.address, readScript));
    this.#judge(told);
    if (told.kind !== "served" || this.isEnding) return false;
    const seen = parseSeen(told.text);
    if (seen === undefined) {
      this.violate("torn answer", `files were told as ${JSON.stringify(told.text.slice(0, 200))}`);
      return false;
    }
    const before = this.ledger.gone;
    for (const { kind, what } of this.ledger.check(seen)) this.violate(kind, what);
    this.#stage.tally.filesChecked += seen.files.length;
    this.#stage.tally.givenUpWrites += this.ledger.gone - before;
    if (isPast && this.#window === window) {
      this.#window = undefined;
      this.ledger.closeLoss();
    }
    return true;
  }

  /** Downloads the newest file and compares it byte for byte. */
  async download(): Promise<void> {
    const writing = this.ledger.written(this.ledger.newest);
    if (writing === undefined) return;
    const { n } = writing;
    const told = await this.#ask("download", () => this.#door.file(this.address, n));
    // What may have been given up is judged with all other files.
    if (told.kind === "missing") {
      await this.readAll();
      return;
    }
    this.#judge(told);
    if (told.kind !== "served") return;
    this.#stage.tally.filesChecked += 1;
    if (told.text === contentOf(writing).toString("utf8")) return;
    this.violate("wrong delivery", `file ${n} was delivered as ${JSON.stringify(told.text.slice(0, 160))}`);
  }

  /** Starts a counting program whose output is followed from now on, if none is. */
  async follow(): Promise<void> {
    if (this.#command !== undefined && !this.#command.isOver) return;
    this.#commands += 1;
    const command = new CountingCommand(this.address, this.#commands, this.#stage);
    this.#command = command;
    this.#judge(await this.#ask("start a command", () => command.begin()));
  }

  /** The numbers that its commands said since it was asked last are counted; whether what they said was wrong is found. */
  inspectCommand(): void {
    const violation = this.#command?.violation;
    if (violation !== undefined) this.violate(violation.kind, violation.what);
  }

  /**
   * Looks until it is known to run or to be paused; false when it was lost for good, as is allowed without a snapshot, or
   * when it has to be there and is not, which is a violation.
   */
  async settle(): Promise<boolean> {
    const untilMs = systemClock.monotonicMs() + settleLimitMs;
    let last = "nothing was answered";
    while (systemClock.monotonicMs() < untilMs) {
      if (this.#stage.tally.isOver) return false;
      const told = await this.#ask("look", () => this.#door.api("GET", this.path));
      if (told.kind === "served") {
        this.#notice(v.parse(detailSchema, JSON.parse(told.text)));
        return true;
      }
      if (told.kind === "missing") {
        this.violate("sandbox gone", "404, and nobody ended it");
        return false;
      }
      if (told.kind === "lost" && !this.#isLossAllowed()) return false;
      if (told.kind === "lost" && !told.canReturn) {
        if (this.hasSnapshot)
          this.violate("sandbox gone", "it is lost without a snapshot, and a pause was acknowledged");
        else this.#stage.tally.lostForGood += 1;
        return false;
      }
      last = JSON.stringify(told);
      await pause(lookEveryMs);
    }
    this.violate("sandbox gone", `it did not come to rest in ${settleLimitMs} ms: ${last}`);
    return false;
  }

  /** Its client and its commands are not needed any more. */
  close(): void {
    this.isEnding = true;
    this.#command?.close();
    this.#stage.tally.streamNumbers += this.#command?.numbers ?? 0;
    this.#stage.sandboxes.delete(this);
  }

  /** What is cut because its sandbox is ended meanwhile ends as abruptly as E2B's does, which is no error. */
  #ask(operation: string, work: () => Promise<Told>): Promise<Told> {
    const ended = { kind: "again", what: "ended meanwhile", nothingHappened: false } as const;
    const judged = async (): Promise<Told> => {
      const told = await work();
      return told.kind === "error" && this.isEnding && /broke off|^AbortError/.test(told.what) ? ended : told;
    };
    return this.#stage.tally.during(operation, judged, this.address.sandboxId);
  }

  #notice({ state, space }: v.InferOutput<typeof detailSchema>): void {
    const generation = Number(space.generation);
    if (generation < this.#generation)
      this.violate("mixed state", `generation ${generation} after ${this.#generation}`);
    this.#generation = Math.max(this.#generation, generation);
    this.state = state;
    this.workerId = space.workerID ?? this.workerId;
    const window = this.#stage.windows.find((open) => open.workerId === this.workerId && !isPast(open));
    if (window !== undefined) this.enter(window);
    if (space.recoveredFrom === null || space.recoveredFrom === this.#recoveredFrom) return;
    if (!this.#isLossAllowed()) return;
    this.#recoveredFrom = space.recoveredFrom;
    this.#stage.tally.recovered += 1;
  }

  /** only a worker that was out of reach for a lease is given up. */
  #isLossAllowed(): boolean {
    if (this.ledger.mayLose) return true;
    this.violate("lost without a reason", "its worker was given up, and was never out of reach for a lease");
    return false;
  }

  /** What no sandbox that is there may answer. */
  #judge(told: Told): void {
    if (told.kind === "missing") this.violate("sandbox gone", "its agent answers 404");
    if (told.kind === "lost") this.#isLossAllowed();
  }
}

function isPast({ closedAtMs }: LossWindow): boolean {
  return closedAtMs !== undefined && closedAtMs <= systemClock.monotonicMs();
}
