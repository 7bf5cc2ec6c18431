// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type EndpointEvidence,
  type ExecutionExit,
  type RunningExecution,
  type Secret,
  SpaceError,
  type StartRequest,
  type Substrate,
  type SubstrateAbilities,
} from "@space/model";

/** One runtime process of a {@link FakeMachine}. */
export interface FakeProcess {
  evidence: EndpointEvidence;
  state: "running" | "frozen";
  /** What its agent knows: changed by a rekey. */
  activationId: ActivationId;
  secret: Uint8Array;
  /** Stands for its memory: lost with the process. */
  memory: string;
  /** Stands for its file system. */
  files: string;
}

export type SubstrateStep = "start" | "freeze" | "thaw" | "snapshot" | "stop" | "list" | "sweep";

/** The processes of one host: they go on when a worker daemon ends. */
export class FakeMachine {
  readonly processes = new Map<ActivationId, FakeProcess>();
  bootId = "boot-1";
  #nextPid = 100;
  listeners: ((exit: ExecutionExit) => void)[] = [];

  begin(activationId: ActivationId, secret: Secret<Uint8Array>, files: string): FakeProcess {
    this.#nextPid += 1;
    const process: FakeProcess = {
      evidence: {
        hostBootId: this.bootId,
        guest: {
          pid: this.#nextPid,
          startTime: String(this.#nextPid * 10),
          executable: { device: "1", inode: "2" },
          uid: 100_000,
        },
        socketPath: `/run/${activationId}.sock`,
        socketInode: String(this.#nextPid * 100),
        cgroup: `/space/${activationId}`,
      },
      state: "running",
      activationId,
      secret: secret.reveal(),
      memory: "",
      files,
    };
    this.processes.set(activationId, process);
    return process;
  }

  /** A process ends by itself. */
  end(activationId: ActivationId, reason: string): void {
    if (!this.processes.delete(activationId)) throw new TypeError("no such process");
    for (const listener of this.listeners) listener({ activationId, reason });
  }

  /** The host restarts: nothing survives. */
  reboot(): void {
    this.processes.clear();
    this.bootId += "+";
  }
}

/** A driver whose executions are entries of a {@link FakeMachine}. */
export class FakeSubstrate implements Substrate {
  readonly abilities: SubstrateAbilities = {
    name: "namespace",
    freeze: true,
    memorySnapshots: false,
    terminals: true,
    launcher: "fake",
  };
  readonly #machine: FakeMachine;
  readonly calls: string[] = [];
  /** Called at each step; what it throws is the driver's failure. It may return a promise that the step waits for. */
  beforeStep: (step: SubstrateStep, id: ActivationId | undefined) => void | Promise<void> = () => undefined;

  constructor(machine: FakeMachine) {
    this.#machine = machine;
    machine.listeners = []; // a daemon that is gone hears nothing
  }

  async start(request: StartRequest): Promise<RunningExecution> {
    const { activationId, activationSecret, filesystem } = request;
    await this.#step("start", activationId);
    const files = filesystem === undefined ? "" : await readAll(filesystem);
    const { evidence } = this.#machine.begin(activationId, activationSecret, files);
    return { activationId, evidence };
  }

  async freeze(activationId: ActivationId): Promise<boolean> {
    await this.#step("freeze", activationId);
    return this.#turn(activationId, "frozen");
  }

  async thaw(activationId: ActivationId): Promise<boolean> {
    await this.#step("thaw", activationId);
    return this.#turn(activationId, "running");
  }

  async *snapshot(activationId: ActivationId): AsyncIterable<Uint8Array> {
    await this.#step("snapshot", activationId);
    const process = this.#machine.processes.get(activationId);
    if (process?.state !== "frozen") throw new SpaceError("substrate/failed", { step: "snapshot" });
    yield Buffer.from(process.files);
  }

  async stop(activationId: ActivationId): Promise<void> {
    await this.#step("stop", activationId);
    this.#machine.processes.delete(activationId);
  }

  async list(): Promise<readonly RunningExecution[]> {
    await this.#step("list", undefined);
    return [...this.#machine.processes].map(([activationId, { evidence }]) => ({ activationId, evidence }));
  }

  async sweep(keep: ReadonlySet<ActivationId>): Promise<number> {
    await this.#step("sweep", undefined);
    const leftovers = [...this.#machine.processes.keys()].filter((id) => !keep.has(id));
    for (const id of leftovers) this.#machine.processes.delete(id);
    return leftovers.length;
  }

  /** what a launcher was told last; it freezes nothing here. */
  deadlineBootMs = 0;

  async holdUntil(deadlineBootMs: number): Promise<void> {
    this.deadlineBootMs = deadlineBootMs;
  }

  onExit(listener: (exit: ExecutionExit) => void): void {
    this.#machine.listeners.push(listener);
  }

  async close(how: "stopAll" | "leave"): Promise<void> {
    if (how === "stopAll") this.#machine.processes.clear();
  }

  async #step(step: SubstrateStep, id: ActivationId | undefined): Promise<void> {
    this.calls.push(step);
    await this.beforeStep(step, id);
  }

  #turn(activationId: ActivationId, state: FakeProcess["state"]): boolean {
    const process = this.#machine.processes.get(activationId);
    if (process === undefined) return false;
    process.state = state;
    return true;
  }
}

async function readAll(archive: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of archive) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}
