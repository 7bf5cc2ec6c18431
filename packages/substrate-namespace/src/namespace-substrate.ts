// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ActivationId,
  type EndpointEvidence,
  type ExecutionExit,
  isSpaceError,
  type RunningExecution,
  SpaceError,
  type StartRequest,
  type Substrate,
  type SubstrateAbilities,
} from "@space/model";
import {
  ControlGroups,
  holdsSocket,
  hostBootId,
  listeningInode,
  peerCredentials,
  processEvidence,
} from "@space/platform-linux";
import type { BindMount, LaunchClient, LaunchExit, StartRecord } from "@space/spaced-guest";
import { ActivationFolders, sparePrefix } from "./activation-folders.ts";
import { DiskWatch, freeBytes } from "./disk-watch.ts";
import { endingOf, LauncherLink, substrateFailure } from "./launcher-link.ts";
import { chooseLauncher, type Launcher } from "./launchers.ts";
import { archiveLayer } from "./layer-archive.ts";
import { activations, asActivation } from "./listed-activations.ts";
import { MemorySnapshots, type SavedGuest } from "./memory-snapshots.ts";
import type { NamespaceSubstrateOptions } from "./options.ts";
import { boundsWithRestorer, startRestored, takeArchive } from "./restored-guests.ts";
import { seccompProgram } from "./seccomp-bpf.ts";
import { buildSkeleton } from "./skeleton.ts";
import { type SpareGuest, SpareGuests } from "./spare-guests.ts";
import { UidRanges } from "./uid-ranges.ts";

const shmBytes = 64 * 1024 * 1024;
const usualSpares = { least: 4, most: 16 };
const noSpares = { least: 0, most: 0 };

interface Held {
  readonly uidBase: number;
  readonly group: string;
}

interface Running extends Held {
  /** The guest's pid 1; 0 while it is being started. */
  pid: number;
  /** Set when the driver itself ends it. */
  ending?: string;
}

/** Runs executions in Linux namespaces of this host. See README.md for what it promises. */
export class NamespaceSubstrate implements Substrate {
  readonly abilities: SubstrateAbilities;
  readonly #options: NamespaceSubstrateOptions;
  readonly #launcher: Launcher;
  readonly #folders: ActivationFolders;
  readonly #groups: ControlGroups;
  readonly #ranges: UidRanges;
  readonly #disk: DiskWatch;
  readonly #recipe: Pick<StartRecord, "lowerDir" | "rootDir" | "binds" | "tmpfsLimitBytes" | "programPath">;
  readonly #binds: readonly BindMount[];
  readonly #memory: MemorySnapshots | undefined;
  readonly #spares: SpareGuests;
  readonly #running = new Map<ActivationId, Running>();
  readonly #exitListeners = new Set<(exit: ExecutionExit) => void>();
  readonly #link: LauncherLink;

  /** Connects to the launcher of an earlier daemon, with all it runs, or starts one. Throws `host/unfit`, `substrate/failed`. */
  static async open(options: NamespaceSubstrateOptions): Promise<NamespaceSubstrate> {
    if (process.getuid?.() !== 0) {
      throw new SpaceError("host/unfit", {
        problem: "namespaces need root",
        remedy: "run the worker as root",
      });
    }
    mkdirSync(options.stateDir, { recursive: true, mode: 0o711 });
    mkdirSync(options.socketDir, { recursive: true, mode: 0o711 });
    mkdirSync(join(options.stateDir, "mount-point"), { recursive: true, mode: 0o700 });
    const filter = join(options.stateDir, "seccomp.bpf");
    writeFileSync(filter, seccompProgram(), { mode: 0o600 });
    const launcher = chooseLauncher(options.launcher, join(options.socketDir, "launch"), filter, options);
    const link = await LauncherLink.open(launcher.command);
    const substrate = new NamespaceSubstrate(options, launcher, link);
    await substrate.#adopt();
    return substrate;
  }

  private constructor(options: NamespaceSubstrateOptions, launcher: Launcher, link: LauncherLink) {
    this.#options = options;
    this.#launcher = launcher;
    this.#link = link;
    this.abilities = launcher.abilities;
    this.#folders = new ActivationFolders(join(options.stateDir, "activations"));
    this.#groups = new ControlGroups(options.controlGroup);
    this.#ranges = new UidRanges(options.firstUid, options.uidRanges);
    this.#disk = new DiskWatch(options.stateDir, (activationId) =>
      this.#end(activationId, "disk limit exceeded"),
    );
    this.#binds = [{ source: "/usr", target: "usr" }, ...(options.binds ?? [])].map((bind) => ({
      ...bind,
      readOnly: true,
    }));
    const { inRange } = launcher;
    this.#memory =
      options.criu &&
      new MemorySnapshots(options.criu, {
        ...{ link, inRange, groups: this.#groups, stateDir: options.stateDir },
        launcherSocket: launcher.command.socketPath,
      });
    this.#recipe = {
      lowerDir: join(options.stateDir, "skeleton"),
      // One for all: each guest mounts on it in a mount namespace of its own.
      rootDir: join(options.stateDir, "mount-point"),
      tmpfsLimitBytes: shmBytes,
      ...(this.#memory?.recipe(this.#binds) ?? { binds: this.#binds }),
    };
    this.#spares = new SpareGuests(launcher.prepares ? (options.spareGuests ?? usualSpares) : noSpares, {
      folders: this.#folders,
      groups: this.#groups,
      ranges: this.#ranges,
      launcher: () => this.#link.connected(),
      recipe: this.#recipe,
      after: (delayMs, action) => {
        const timer = setTimeout(action, delayMs).unref();
        return () => clearTimeout(timer);
      },
    });
    link.listen({
      onExit: (exit) => this.#noteExit(exit),
      onLost: () => this.#noteLauncherLost(),
    });
  }

  /** For starting and ending `spaced-host` beside the guests. Becomes another one when the launcher had to be restarted. */
  get launchClient(): LaunchClient {
    return this.#link.client;
  }

  async start(request: StartRequest): Promise<RunningExecution> {
    if (freeBytes(this.#options.stateDir) < this.#options.reserveBytes) {
      throw new SpaceError("host/unfit", {
        problem: "the disk is nearly full",
        remedy: "free space on the worker",
      });
    }
    if (this.#running.has(request.activationId)) {
      throw new SpaceError("internal/bug", { where: "activation started twice" });
    }
    // A layer must be whole before it is mounted, so a restored one cannot use a guest that is prepared already.
    const spare = request.filesystem === undefined ? this.#spares.take() : undefined;
    try {
      return await this.#start(request, spare);
    } catch (error) {
      // The spare may have died. Nothing of the activation has run, so it can be started from the beginning.
      if (spare === undefined || !isSpaceError(error, "substrate/failed")) throw error;
      return await this.#start(request, undefined);
    } finally {
      this.#spares.refill();
    }
  }

  async #start(request: StartRequest, spare: SpareGuest | undefined): Promise<RunningExecution> {
    const { activationId, limits } = request;
    // What is prepared yields to what is wanted; another start may take what was freed, then once more.
    while (spare === undefined && this.#ranges.exhausted && (await this.#spares.sacrifice()));
    const uidBase = spare?.uidBase ?? this.#ranges.take();
    const group = spare?.name ?? activationId;
    const running: Running = { uidBase, group, pid: 0 };
    this.#running.set(activationId, running);
    try {
      const note = { uidBase, group, diskBytes: limits.diskBytes };
      const folder =
        spare === undefined
          ? this.#folders.create(activationId, note)
          : this.#folders.adoptSpare(spare.name, activationId, note);
      const restored =
        request.filesystem === undefined
          ? undefined
          : await takeArchive(
              request.filesystem,
              { activationId, uidBase, upper: folder.upper, binds: this.#binds },
              { inRange: this.#launcher.inRange, memory: this.#memory },
            );
      const identity = {
        activationId,
        secret: request.activationSecret.reveal(),
        socketPath: this.#socketPath(activationId),
        socketUid: this.#options.socketUid,
        hostname: request.hostname,
        bootId: randomUUID(),
        fileLimitBytes: limits.diskBytes,
      };
      const places = { upperDir: folder.upper, workDir: folder.work };
      const bounds = this.#memory === undefined ? limits : boundsWithRestorer(limits);
      const cgroupFiles = spare === undefined ? this.#groups.create(group, bounds) : [];
      if (spare !== undefined) this.#groups.limit(group, bounds);
      const client = await this.#link.connected();
      const record = { ...identity, ...places, ...this.#recipe, uidBase, cgroupFiles };
      const started =
        spare !== undefined
          ? await client.claim({ ...identity, spare: spare.name })
          : restored === undefined
            ? await client.start(record)
            : await startRestored({ ...record, ...restored }, { link: this.#link, memory: this.#memory });
      running.pid = started.hostPid;
      const evidence = this.#evidence(activationId, group, started.hostPid, started.startTime);
      this.#disk.add(activationId, { path: folder.upper, limitBytes: limits.diskBytes });
      this.#memory?.forget(activationId);
      return { activationId, evidence };
    } catch (cause) {
      await this.#release(activationId, { uidBase, group }).catch(() => undefined); // the first failure is the one to report
      throw substrateFailure(cause);
    }
  }

  async freeze(activationId: ActivationId, purpose: "hold" | "snapshot" = "hold"): Promise<boolean> {
    const guest = this.#guest(activationId);
    if (guest === undefined) return false;
    if (purpose === "snapshot" && this.#memory !== undefined) await this.#memory.freeze(guest);
    else await this.#groups.freeze(guest.group);
    return this.#running.has(activationId);
  }

  async thaw(activationId: ActivationId): Promise<boolean> {
    const guest = this.#guest(activationId);
    if (guest === undefined) return false;
    await this.#groups.thaw(guest.group);
    try {
      await this.#memory?.letGoOn(guest);
    } catch (error) {
      if (this.#running.has(activationId)) throw substrateFailure(error);
    }
    return this.#running.has(activationId);
  }

  async *snapshot(activationId: ActivationId): AsyncGenerator<Uint8Array> {
    const note = this.#folders.note(activationId);
    if (note === undefined) throw new SpaceError("substrate/failed", { step: "find the layer" });
    try {
      if (this.#memory !== undefined) yield* this.#memory.save(this.#guest(activationId), this.#binds);
    } catch (error) {
      if (isSpaceError(error, "snapshot/fatal")) this.#end(activationId, "saving its memory failed");
      throw error;
    }
    yield* archiveLayer(this.#launcher.inRange, note.uidBase, this.#folders.upperOf(activationId));
  }

  async stop(activationId: ActivationId): Promise<void> {
    await this.#release(activationId, this.#running.get(activationId) ?? this.#folders.note(activationId));
  }

  async list(): Promise<readonly RunningExecution[]> {
    const listing = await (await this.#link.connected()).list();
    return activations(listing).flatMap(({ activationId, hostPid, startTime }) => {
      try {
        const group = this.#running.get(activationId)?.group ?? activationId;
        return [{ activationId, evidence: this.#evidence(activationId, group, hostPid, startTime) }];
      } catch {
        return []; // it ended since the launcher answered
      }
    });
  }

  async sweep(keep: ReadonlySet<ActivationId>): Promise<number> {
    const found = new Set<ActivationId>(this.#folders.list());
    for (const activationId of this.#memory?.list() ?? []) found.add(activationId);
    for (const { activationId } of activations(await (await this.#link.connected()).list()))
      found.add(activationId);
    for (const name of [...(await this.#groups.list()), ...readdirSync(this.#options.socketDir)]) {
      const activationId = asActivation(name);
      if (activationId !== undefined) found.add(activationId);
    }
    const left = [...found].filter((activationId) => !keep.has(activationId));
    for (const activationId of left) await this.stop(activationId);
    return left.length;
  }

  holdUntil(deadlineBootMs: number): Promise<void> {
    return this.#link.holdUntil(deadlineBootMs);
  }

  onExit(listener: (exit: ExecutionExit) => void): void {
    this.#exitListeners.add(listener);
  }

  async close(how: "stopAll" | "leave"): Promise<void> {
    this.#exitListeners.clear();
    this.#disk.close();
    await this.#spares.close();
    if (how === "stopAll") await this.sweep(new Set());
    // With nothing left to run, the launcher and what it runs beside guests have no more reason to.
    if (this.#running.size === 0) {
      await (await this.#link.connected()).quit();
      this.#groups.close();
    }
    this.#link.close();
  }

  #guest(activationId: ActivationId): SavedGuest | undefined {
    const running = this.#running.get(activationId);
    return running && { activationId, ...running, socketPath: this.#socketPath(activationId) };
  }

  #socketPath(activationId: ActivationId): string {
    return join(this.#options.socketDir, activationId);
  }

  #evidence(activationId: ActivationId, cgroup: string, pid: number, startTime: bigint): EndpointEvidence {
    const socketPath = this.#socketPath(activationId);
    const guest = processEvidence(pid);
    const socketInode = listeningInode(socketPath);
    // the very process, and the socket that listens there is its own; or waits for it, with the launcher.
    const holders = this.#memory === undefined ? [pid] : [pid, peerCredentials(this.#link.client.socket).pid];
    const isOwner = socketInode !== undefined && holders.some((holder) => holdsSocket(holder, socketInode));
    if (guest.startTime !== String(startTime) || !isOwner) {
      throw new SpaceError("endpoint/unverifiable", { problem: "the guest is gone" });
    }
    return { hostBootId: hostBootId(), guest, socketPath, socketInode, cgroup };
  }

  /** Takes note of what an earlier daemon started, and makes the lower layer when nothing uses it. */
  async #adopt(): Promise<void> {
    const running = activations(await this.#link.client.list());
    if (running.length === 0) {
      rmSync(this.#recipe.lowerDir, { recursive: true, force: true });
      buildSkeleton(this.#recipe.lowerDir);
    }
    // Every folder holds its range until it is removed, whether its guest runs or not.
    const claimed = new Set<string>();
    for (const activationId of this.#folders.list()) {
      const note = this.#folders.note(activationId);
      if (note === undefined) continue;
      this.#ranges.claim(note.uidBase);
      claimed.add(note.group);
    }
    for (const { activationId, hostPid } of running) {
      const note = this.#folders.note(activationId);
      if (note === undefined) continue; // not ours to serve: the sweep ends it
      this.#running.set(activationId, { uidBase: note.uidBase, group: note.group, pid: hostPid });
      this.#disk.add(activationId, {
        path: this.#folders.upperOf(activationId),
        limitBytes: note.diskBytes,
      });
    }
    await this.#spares.discardLeftovers(claimed);
    this.#spares.refill();
  }

  /** Ends one execution and everything of it. Safe to repeat. The range is free only when nothing owns files in it. */
  async #release(activationId: ActivationId, held: Held | undefined): Promise<void> {
    this.#disk.remove(activationId);
    this.#running.delete(activationId);
    const group = held?.group ?? activationId;
    const killed = Promise.all([
      this.#link.kill(activationId),
      group === activationId ? undefined : this.#link.kill(group),
    ]);
    // A frozen group of cgroup v1 delivers the kill only while `destroy` thaws it: then both at once.
    if (this.#groups.killsFrozen) await killed;
    await Promise.all([killed, this.#groups.destroy(group)]);
    rmSync(this.#socketPath(activationId), { force: true });
    this.#memory?.forget(activationId);
    await this.#folders.remove(activationId);
    if (held !== undefined) this.#ranges.give(held.uidBase);
  }

  #noteLauncherLost(): void {
    this.#memory?.noteLauncherLost();
    void this.#spares.dropAll().catch(() => undefined); // the sweep finds what is left
    for (const activationId of this.#running.keys()) {
      for (const listener of this.#exitListeners) listener({ activationId, reason: "the launcher ended" });
    }
  }

  #noteExit(exit: LaunchExit): void {
    if (this.#memory?.noteExit(exit) === true) return;
    if (exit.name.startsWith(sparePrefix)) void this.#spares.drop(exit.name).catch(() => undefined);
    const activationId = asActivation(exit.name);
    const running = activationId === undefined ? undefined : this.#running.get(activationId);
    if (activationId === undefined || running === undefined) return; // a bridge, or one that was stopped
    this.#disk.remove(activationId);
    const reason = running.ending ?? endingOf(exit);
    for (const listener of this.#exitListeners) listener({ activationId, reason });
  }

  #end(activationId: ActivationId, reason: string): void {
    const running = this.#running.get(activationId);
    if (running === undefined) return;
    running.ending = reason;
    void this.#link.kill(activationId);
  }
}
