// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type BootClock,
  type EndpointEvidence,
  type ExecutionExit,
  type RunningExecution,
  type SandboxId,
  SpaceError,
  type StartRequest,
  type Substrate,
  type SubstrateAbilities,
} from "@space/model";
import type { EventLoop, Incarnation } from "./event-loop.ts";

/** One runtime process: what really runs. */
export interface SimProcess {
  /** Names it in the whole world. */
  readonly uid: number;
  readonly host: string;
  /** the pod in which it runs. */
  readonly podUid: string | undefined;
  readonly sandboxId: SandboxId;
  readonly startedAs: ActivationId;
  readonly evidence: EndpointEvidence;
  state: "running" | "frozen" | "gone";
  /** The activation that its agent was told to be, with the secret of it. */
  activation: ActivationId;
  secret: Uint8Array;
  /** stopped because its worker has no lease, whatever its state is otherwise. */
  fenced: boolean;
  /** Its files: the numbers of the writes, in order. */
  files: string;
}

/** Told what really happens. */
export interface MachineWatcher {
  started(process: SimProcess, fromSnapshot: boolean): void;
  turned(process: SimProcess): void;
  snapshotted(process: SimProcess): void;
}

/** How the driver behaves. */
export interface MachineManners {
  readonly stepMs: () => number;
  /** Whether this step fails. */
  readonly fails: () => boolean;
  /** A step has failed, or its answer comes late. */
  readonly onTrouble: () => void;
}

/** For as long as it lasts, steps fail or come late with these chances. */
export interface MachineTrouble {
  readonly failChance: number;
  readonly lateChance: number;
  readonly lateMs: number;
}

/** What becomes of one step: `undone` and `done` fail, before or after their effect; `late` answers long after it. */
type StepFate = "made" | "undone" | "done" | "late";

/** The processes of one host; they outlive the worker daemon and its launcher's client. */
export class SimMachine {
  readonly host: string;
  readonly processes = new Map<ActivationId, SimProcess>();
  readonly bySocket = new Map<string, SimProcess>();
  readonly watcher: MachineWatcher;
  readonly loop: EventLoop;
  readonly manners: MachineManners;
  readonly #uids: () => number;
  readonly clock: BootClock;
  onExit: ((exit: ExecutionExit) => void) | undefined;
  trouble: MachineTrouble | undefined;
  /** the pod that this host is now; undefined where there are none. */
  podUid: string | undefined;
  readonly #chance: (probability: number) => boolean;
  /** One more each time that the host has lost its power. */
  boot = 1;
  /** Whose words the launcher heard last: what an earlier daemon asked for is done before a word of the next, or never. */
  daemon: Incarnation | undefined;
  /** on the host's boot-time clock; 0 until somebody has said one. */
  #deadlineMs = 0;
  #cancelFence: () => void = () => undefined;

  constructor(
    host: string,
    ports: {
      readonly loop: EventLoop;
      readonly watcher: MachineWatcher;
      readonly manners: MachineManners;
      readonly uids: () => number;
      readonly clock: BootClock;
      readonly chance: (probability: number) => boolean;
    },
  ) {
    this.host = host;
    this.loop = ports.loop;
    this.watcher = ports.watcher;
    this.manners = ports.manners;
    this.#uids = ports.uids;
    this.clock = ports.clock;
    this.#chance = ports.chance;
  }

  fateOf(mayFail: boolean): StepFate {
    const { trouble, manners } = this;
    const fails = mayFail && (manners.fails() || (trouble !== undefined && this.#chance(trouble.failChance)));
    if (fails) return this.#chance(0.5) ? "undone" : "done";
    return trouble !== undefined && this.#chance(trouble.lateChance) ? "late" : "made";
  }

  begin(
    { sandboxId, activationId, activationSecret }: StartRequest,
    files: string,
    restored: boolean,
  ): SimProcess {
    const uid = this.#uids();
    const socketPath = `/run/${uid}.sock`;
    const process: SimProcess = {
      uid,
      host: this.host,
      podUid: this.podUid,
      sandboxId,
      startedAs: activationId,
      evidence: {
        hostBootId: `${this.host} boot ${this.boot}`,
        guest: {
          pid: 100 + uid,
          startTime: String(uid),
          executable: { device: "1", inode: "2" },
          uid: 100_000,
        },
        socketPath,
        socketInode: String(uid),
        cgroup: `/space/${uid}`,
      },
      state: "running",
      fenced: this.#deadlineMs > 0 && this.clock.bootMs() >= this.#deadlineMs,
      activation: activationId,
      secret: activationSecret.reveal(),
      files,
    };
    this.processes.set(activationId, process);
    this.bySocket.set(socketPath, process);
    this.watcher.started(process, restored);
    return process;
  }

  turn(process: SimProcess, state: SimProcess["state"]): void {
    if (process.state === state || process.state === "gone") return;
    process.state = state;
    if (state === "gone") {
      this.processes.delete(process.startedAs);
      this.bySocket.delete(process.evidence.socketPath);
    }
    this.watcher.turned(process);
  }

  /** as the launcher does: what runs is frozen when the moment passes, and goes on when a later one is said. */
  holdUntil(deadlineBootMs: number): void {
    this.#deadlineMs = Math.max(this.#deadlineMs, deadlineBootMs);
    this.#cancelFence();
    const leftMs = this.#deadlineMs - this.clock.bootMs();
    if (leftMs > 0) this.#cancelFence = this.clock.after(leftMs, () => this.#fence(true));
    this.#fence(leftMs <= 0);
  }

  #fence(fenced: boolean): void {
    for (const process of this.processes.values()) {
      if (process.fenced === fenced) continue;
      process.fenced = fenced;
      if (process.state === "running") this.watcher.turned(process);
    }
  }

  /** One ends by itself. */
  exit(process: SimProcess, daemon: Incarnation | undefined): void {
    this.turn(process, "gone");
    const { onExit } = this;
    if (onExit !== undefined)
      this.loop.soon(daemon, () => onExit({ activationId: process.startedAs, reason: "exited" }));
  }

  /** The host loses its power. */
  powerOff(): void {
    for (const process of [...this.processes.values()]) this.turn(process, "gone");
    this.onExit = undefined;
    this.#cancelFence();
    this.#deadlineMs = 0;
    this.boot += 1;
  }
}

/** One daemon's driver. What it was asked to do is done also when the daemon ends meanwhile; only the answer is not heard. */
export class SimSubstrate implements Substrate {
  readonly abilities: SubstrateAbilities;
  readonly #machine: SimMachine;
  readonly #owner: Incarnation;

  constructor(machine: SimMachine, owner: Incarnation) {
    this.#machine = machine;
    this.#owner = owner;
    this.abilities = {
      name: machine.podUid === undefined ? "namespace" : "kubernetes",
      freeze: true,
      memorySnapshots: false,
      terminals: true,
      launcher: "simulated",
    };
    machine.onExit = undefined; // a daemon that is gone hears nothing
    machine.daemon = owner;
  }

  async start(request: StartRequest): Promise<RunningExecution> {
    const files = request.filesystem === undefined ? "" : await readAll(request.filesystem);
    const isRestored = request.filesystem !== undefined;
    return this.#step("start", (fails) => {
      const process = this.#machine.begin(request, files, isRestored);
      if (fails) this.#machine.turn(process, "gone"); // a failed start leaves nothing behind
      return { activationId: request.activationId, evidence: process.evidence };
    });
  }

  freeze(activationId: ActivationId): Promise<boolean> {
    return this.#step("freeze", () => this.#turn(activationId, "frozen"));
  }

  thaw(activationId: ActivationId): Promise<boolean> {
    return this.#step("thaw", () => this.#turn(activationId, "running"));
  }

  async *snapshot(activationId: ActivationId): AsyncIterable<Uint8Array> {
    const files = await this.#step("snapshot", () => {
      const process = this.#machine.processes.get(activationId);
      if (process?.state !== "frozen") throw new SpaceError("substrate/failed", { step: "snapshot" });
      this.#machine.watcher.snapshotted(process);
      return process.files;
    });
    yield Buffer.from(`files ${files}`);
  }

  stop(activationId: ActivationId): Promise<void> {
    return this.#step("stop", () => void this.#turn(activationId, "gone"));
  }

  list(): Promise<readonly RunningExecution[]> {
    return this.#step("list", () =>
      [...this.#machine.processes].map(([activationId, { evidence }]) => ({ activationId, evidence })),
    );
  }

  sweep(keep: ReadonlySet<ActivationId>): Promise<number> {
    return this.#step("sweep", () => {
      const leftovers = [...this.#machine.processes.values()].filter(({ startedAs }) => !keep.has(startedAs));
      for (const process of leftovers) this.#machine.turn(process, "gone");
      return leftovers.length;
    });
  }

  holdUntil(deadlineBootMs: number): Promise<void> {
    return this.#step("hold", () => this.#machine.holdUntil(deadlineBootMs));
  }

  onExit(listener: (exit: ExecutionExit) => void): void {
    this.#machine.onExit = listener;
  }

  async close(): Promise<void> {
    // The processes go on.
  }

  #turn(activationId: ActivationId, state: SimProcess["state"]): boolean {
    const process = this.#machine.processes.get(activationId);
    if (process === undefined) return false;
    this.#machine.turn(process, state);
    return true;
  }

  /** A step that fails has had its effect, or none; of one that is late the effect, or only the answer, is. */
  #step<T>(step: string, action: (fails: boolean) => T): Promise<T> {
    const { loop, manners, trouble } = this.#machine;
    const fate = this.#machine.fateOf(mayFail.has(step));
    if (fate !== "made") manners.onTrouble();
    const effectMs =
      manners.stepMs() + (fate === "late" && mayActLate.has(step) ? (trouble?.lateMs ?? 0) : 0);
    const answerMs = fate === "late" && !mayActLate.has(step) ? (trouble?.lateMs ?? 0) : 0;
    const { boot } = this.#machine;
    return new Promise<T>((resolve, reject) => {
      loop.after(effectMs, undefined, () => {
        // What is late is late in the daemon, and ends with it; of the rest the launcher has heard.
        const isHeard = boot === this.#machine.boot && this.#machine.daemon === this.#owner;
        if (!isHeard || (fate === "late" && !this.#owner.alive)) return;
        let answer: () => void;
        try {
          if (fate === "undone") throw new SpaceError("substrate/failed", { step });
          const value = action(fate === "done");
          if (fate === "done") throw new SpaceError("substrate/failed", { step });
          answer = () => resolve(value);
        } catch (error) {
          answer = () => reject(error);
        }
        if (answerMs > 0) loop.after(answerMs, this.#owner, answer);
        else loop.soon(this.#owner, answer);
      });
    });
  }
}

const mayFail: ReadonlySet<string> = new Set(["start", "freeze", "thaw", "snapshot"]);
/** Of others the effect comes in time and the answer late. */
const mayActLate: ReadonlySet<string> = new Set(["start", "freeze", "stop"]);

async function readAll(archive: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of archive) pieces.push(piece);
  return Buffer.concat(pieces).toString().slice("files ".length);
}
