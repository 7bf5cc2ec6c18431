// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ActivationId,
  type ExecutionExit,
  type RunningExecution,
  SpaceError,
  type StartRequest,
  type Substrate,
  type SubstrateAbilities,
} from "@space/model";
import { ControlGroups } from "@space/platform-linux";
import { type LaunchClient, type LaunchExit, nativeLauncherPath } from "@space/spaced-guest";
import {
  asActivation,
  endingOf,
  freeBytes,
  LauncherLink,
  processorFeatures,
  seccompProgram,
  substrateFailure,
} from "@space/substrate-namespace";
import { awaitSocket, isUnreachable, listensNow, requireUnchanged, takeEvidence } from "./guest-socket.ts";
import { hostLimits, requireFit } from "./host-needs.ts";
import { archiveImage, type ImageOrigin, restoreImage } from "./image-archive.ts";
import { ociSpec } from "./oci-spec.ts";
import type { GvisorSubstrateOptions } from "./options.ts";
import { buildText } from "./runsc-build.ts";
import { RunscCommands } from "./runsc-commands.ts";
import { listPlaces, type SandboxNote, SandboxPlaces } from "./sandbox-places.ts";
import { buildSandboxRoot } from "./sandbox-root.ts";

/** Linux's limit. */
const longestHostname = 64;
const defaultOrphanSeconds = 120;

interface Running {
  note: SandboxNote | undefined;
  hasEnded: boolean;
  /** Set when the driver itself ends it. */
  ending?: string;
}

/** Runs executions each under a kernel of its own, in user space (gVisor's runsc). See README.md for what it promises. */
export class GvisorSubstrate implements Substrate {
  readonly abilities: SubstrateAbilities = {
    name: "gvisor",
    freeze: true,
    memorySnapshots: true,
    terminals: true,
    launcher: "native",
  };
  readonly #options: GvisorSubstrateOptions;
  readonly #groups: ControlGroups;
  readonly #runsc: RunscCommands;
  readonly #origin: ImageOrigin;
  readonly #root: string;
  readonly #running = new Map<ActivationId, Running>();
  readonly #exitListeners = new Set<(exit: ExecutionExit) => void>();
  readonly #launcher: LauncherLink;

  /** Connects to the launcher of an earlier daemon, with all it runs, or starts one. Throws `host/unfit`, `substrate/failed`. */
  static async open(options: GvisorSubstrateOptions): Promise<GvisorSubstrate> {
    requireFit(options);
    mkdirSync(join(options.stateDir, "activations"), { recursive: true, mode: 0o700 });
    mkdirSync(options.socketDir, { recursive: true, mode: 0o711 });
    const filter = join(options.stateDir, "seccomp.bpf");
    writeFileSync(filter, seccompProgram(), { mode: 0o600 });
    const socketPath = join(options.socketDir, "launch");
    const orphan = ["--orphan-seconds", String(options.orphanSeconds ?? defaultOrphanSeconds)];
    const argv = [nativeLauncherPath, "--socket", socketPath, "--seccomp", filter, ...orphan];
    const logPath = join(options.stateDir, "launcher.log");
    const launcher = await LauncherLink.open({ argv, socketPath, logPath });
    const substrate = new GvisorSubstrate(options, launcher);
    await substrate.#adopt();
    return substrate;
  }

  private constructor(options: GvisorSubstrateOptions, launcher: LauncherLink) {
    this.#options = options;
    this.#groups = new ControlGroups(options.controlGroup);
    this.#runsc = new RunscCommands(options.runsc.path);
    this.#origin = { runsc: buildText(options.runsc.build), features: processorFeatures() };
    this.#root = join(options.stateDir, "root");
    this.#launcher = launcher;
    launcher.listen({
      onExit: (exit) => this.#noteExit(exit),
      onLost: () => this.#noteLauncherLost(),
    });
  }

  /** For starting and ending `spaced-host` beside the guests. Becomes another one when the launcher had to be restarted. */
  get launchClient(): LaunchClient {
    return this.#launcher.client;
  }

  async start(request: StartRequest): Promise<RunningExecution> {
    const { activationId } = request;
    if (freeBytes(this.#options.stateDir) < this.#options.reserveBytes) {
      const remedy = "free space on the worker";
      throw new SpaceError("host/unfit", { problem: "the disk is nearly full", remedy });
    }
    if (this.#running.has(activationId))
      throw new SpaceError("internal/bug", { where: "activation started twice" });
    if (Buffer.byteLength(request.hostname) > longestHostname)
      throw new SpaceError("substrate/failed", { step: "hostname" });
    this.#running.set(activationId, { note: undefined, hasEnded: false });
    try {
      const note = await this.#start(request);
      return { activationId, evidence: note.endpoint };
    } catch (cause) {
      await this.stop(activationId).catch(() => undefined); // the first failure is the one to report
      throw substrateFailure(cause);
    }
  }

  async #start(request: StartRequest): Promise<SandboxNote> {
    const { activationId, hostname, limits, filesystem } = request;
    const places = this.#places(activationId);
    const spec = {
      hostname,
      root: this.#root,
      meeting: places.meeting,
      guestProgram: nativeLauncherPath,
      memoryBytes: limits.memoryBytes,
    };
    places.create(ociSpec(spec), request.activationSecret);
    if (filesystem !== undefined) await restoreImage(places.image, this.#origin, filesystem);
    const client = await this.#launcher.connected();
    await client.run({
      activationId,
      argv: this.#runsc.runtime(places, filesystem === undefined ? "run" : "restore"),
      env: {},
      stderrPath: places.log,
      cgroupFiles: this.#groups.create(activationId, hostLimits(limits)),
    });
    await this.#untilItListens(activationId, filesystem !== undefined);
    emptyFolder(places.image); // the memory is in the sandbox now
    const note = await takeEvidence(places, activationId, this.#groups);
    this.#note(activationId, note);
    return note;
  }

  /** An image that cannot be restored is the snapshot's fault, not the start's. */
  async #untilItListens(activationId: ActivationId, restored: boolean): Promise<void> {
    const running = this.#running.get(activationId);
    try {
      await awaitSocket(this.#places(activationId), this.#options.socketUid, () => running?.hasEnded ?? true);
    } catch (cause) {
      if (!restored) throw cause;
      throw new SpaceError("snapshot/refused", { problem: "runsc does not restore it" }, { cause });
    }
  }

  async freeze(activationId: ActivationId, purpose: "hold" | "snapshot" = "hold"): Promise<boolean> {
    const running = this.#alive(activationId);
    if (running === undefined) return false;
    if (purpose === "snapshot" && !running.note.standsStill)
      await this.#standStill(activationId, running.note);
    await this.#groups.freeze(activationId);
    return this.#alive(activationId) !== undefined;
  }

  /**
   * Stops every task from inside, once it is proved that nothing reaches in any more. Noted before it is done: a thaw
   * looks how far it came. Throws `substrate/failed`, step "quiesce", with the sandbox running on.
   */
  async #standStill(activationId: ActivationId, note: SandboxNote): Promise<void> {
    const places = this.#places(activationId);
    await this.#groups.thaw(activationId);
    if (!(await isUnreachable(note, await this.#clients()))) {
      if (!listensNow(note)) await this.#letGoOn(places, note);
      throw new SpaceError("substrate/failed", { step: "quiesce" });
    }
    this.#note(activationId, { ...note, standsStill: true });
    await this.#runsc.pause(places);
  }

  /** What may have connected to a guest: the bridges that the launcher runs beside the guests. */
  async #clients(): Promise<readonly number[]> {
    const listed = await (await this.#launcher.connected()).list();
    return listed.flatMap(({ name, hostPid, running }) =>
      running && asActivation(name) === undefined ? [hostPid] : [],
    );
  }

  async thaw(activationId: ActivationId): Promise<boolean> {
    const running = this.#alive(activationId);
    if (running === undefined) return false;
    await this.#groups.thaw(activationId);
    // Also where it never came to stand still after it had let go.
    if (!running.note.standsStill && listensNow(running.note)) return true;
    const places = this.#places(activationId);
    try {
      if (running.note.standsStill && (await this.#runsc.isPaused(places))) await this.#runsc.resume(places);
      await this.#letGoOn(places, running.note);
    } catch (error) {
      if (this.#alive(activationId) === undefined) return false;
      throw error;
    }
    this.#note(activationId, { ...running.note, standsStill: false });
    return this.#alive(activationId) !== undefined;
  }

  async #letGoOn(places: SandboxPlaces, note: SandboxNote): Promise<void> {
    if (!listensNow(note)) places.sayGoOn();
    await awaitSocket(places, this.#options.socketUid, () => this.#alive(places.activationId) === undefined);
  }

  /** Memory and files of a sandbox that stands still: see `Substrate.snapshot`. */
  async *snapshot(activationId: ActivationId): AsyncGenerator<Uint8Array> {
    const running = this.#alive(activationId);
    if (running?.note.standsStill !== true) throw new SpaceError("substrate/failed", { step: "stand still" });
    const places = this.#places(activationId);
    emptyFolder(places.image); // of an attempt that was cut short
    await this.#groups.thaw(activationId); // the kernel must run to be asked; its tasks are stopped all the same
    try {
      if (!(await this.#runsc.isPaused(places))) await this.#runsc.pause(places);
      await this.#runsc.checkpoint(places);
    } catch (cause) {
      this.#end(activationId, "its checkpoint failed"); // it answers nothing any more
      throw new SpaceError("snapshot/fatal", { problem: "the checkpoint failed" }, { cause });
    }
    await this.#groups.freeze(activationId);
    try {
      yield* archiveImage(places.image, this.#origin);
    } finally {
      emptyFolder(places.image);
    }
  }

  async stop(activationId: ActivationId): Promise<void> {
    this.#running.delete(activationId);
    const killed = this.#launcher.kill(activationId);
    // A frozen group of cgroup v1 delivers the kill only while `destroy` thaws it: then both at once.
    if (this.#groups.killsFrozen) await killed;
    await Promise.all([killed, this.#groups.destroy(activationId)]);
    this.#places(activationId).remove();
  }

  async list(): Promise<readonly RunningExecution[]> {
    const found: RunningExecution[] = [];
    for (const { name, running } of await (await this.#launcher.connected()).list()) {
      const activationId = asActivation(name);
      const note = activationId === undefined || !running ? undefined : this.#places(activationId).note();
      if (activationId === undefined || note === undefined) continue;
      try {
        await requireUnchanged(note, this.#groups);
        found.push({ activationId, evidence: note.endpoint });
      } catch {
        // it ended since the launcher answered, or is not what was recorded
      }
    }
    return found;
  }

  async sweep(keep: ReadonlySet<ActivationId>): Promise<number> {
    const found = new Set(listPlaces(this.#options.stateDir, this.#options.socketDir));
    const listed = await (await this.#launcher.connected()).list();
    for (const name of [...listed.map(({ name }) => name), ...(await this.#groups.list())]) {
      const activationId = asActivation(name);
      if (activationId !== undefined) found.add(activationId);
    }
    const left = [...found].filter((activationId) => !keep.has(activationId));
    for (const activationId of left) await this.stop(activationId);
    return left.length;
  }

  holdUntil(deadlineBootMs: number): Promise<void> {
    return this.#launcher.holdUntil(deadlineBootMs);
  }

  onExit(listener: (exit: ExecutionExit) => void): void {
    this.#exitListeners.add(listener);
  }

  async close(how: "stopAll" | "leave"): Promise<void> {
    this.#exitListeners.clear();
    if (how === "stopAll") await this.sweep(new Set());
    // With nothing left to run, the launcher and what it runs beside guests have no more reason to.
    if (this.#running.size === 0) {
      await (await this.#launcher.connected()).quit();
      this.#groups.close();
    }
    this.#launcher.close();
  }

  #noteExit(exit: LaunchExit): void {
    const activationId = asActivation(exit.name);
    const running = activationId === undefined ? undefined : this.#running.get(activationId);
    if (activationId === undefined || running === undefined || running.hasEnded) return; // a bridge, or one that was stopped
    running.hasEnded = true;
    if (running.note === undefined) return; // it was still starting: the start reports it
    const reason = running.ending ?? `the sandbox's kernel ${endingOf(exit)}`;
    for (const listener of this.#exitListeners) listener({ activationId, reason });
  }

  #noteLauncherLost(): void {
    for (const [activationId, running] of this.#running) {
      if (running.hasEnded) continue;
      running.hasEnded = true;
      for (const listener of this.#exitListeners) listener({ activationId, reason: "the launcher ended" });
    }
  }

  #places(activationId: ActivationId): SandboxPlaces {
    return new SandboxPlaces(this.#options.stateDir, this.#options.socketDir, activationId);
  }

  #note(activationId: ActivationId, note: SandboxNote): void {
    this.#places(activationId).writeNote(note);
    const running = this.#running.get(activationId);
    if (running !== undefined) running.note = note;
  }

  #alive(activationId: ActivationId): { readonly note: SandboxNote } | undefined {
    const running = this.#running.get(activationId);
    if (running === undefined || running.hasEnded || running.note === undefined) return undefined;
    return { note: running.note };
  }

  /** Takes note of what an earlier daemon started, and makes the root when nothing uses it. */
  async #adopt(): Promise<void> {
    const listed = await this.#launcher.client.list();
    const ids = listed.flatMap(({ name, running }) => (running ? (asActivation(name) ?? []) : []));
    if (ids.length === 0) buildSandboxRoot(this.#root);
    for (const activationId of ids) {
      const note = this.#places(activationId).note();
      // One without a note is not ours to serve: the sweep ends it.
      if (note !== undefined) this.#running.set(activationId, { note, hasEnded: false });
    }
  }

  #end(activationId: ActivationId, reason: string): void {
    const running = this.#running.get(activationId);
    if (running === undefined) return;
    running.ending ??= reason;
    void this.#launcher.kill(activationId);
  }
}

function emptyFolder(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
}
