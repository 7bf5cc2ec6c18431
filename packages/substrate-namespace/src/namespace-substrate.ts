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
  parseActivationId,
  type RunningExecution,
  SpaceError,
  type StartRequest,
  type Substrate,
  type SubstrateAbilities,
} from "@space/model";
import { ControlGroups, hostBootId, listeningInode, processEvidence } from "@space/platform-linux";
import {
  GuestConnectionError,
  GuestError,
  type LaunchClient,
  type LaunchExit,
  type LaunchListing,
} from "@space/spaced-guest";
import { ActivationFolders } from "./activation-folders.ts";
import { DiskWatch, freeBytes } from "./disk-watch.ts";
import { connectLauncher } from "./launcher-process.ts";
import { chooseLauncher, type Launcher, type LauncherKind } from "./launchers.ts";
import { archiveLayer, restoreLayer } from "./layer-archive.ts";
import { assembleSeccomp } from "./seccomp-bpf.ts";
import { guestPolicy } from "./seccomp-policy.ts";
import { buildSkeleton } from "./skeleton.ts";
import { UidRanges } from "./uid-ranges.ts";

export interface NamespaceSubstrateOptions {
  /** Layers and notes; on a file system that overlay can use (not another overlay). Every parent is traversable (o+x). */
  readonly stateDir: string;
  /** Sockets; a short path (at most 70 bytes), traversable by `socketUid`. */
  readonly socketDir: string;
  /** One path component, the same at every start of this worker, unique on the host. */
  readonly controlGroup: string;
  /** Host user ids for guests: `uidRanges` ranges of 65536 from `firstUid` on. Nothing else on the host uses them. */
  readonly firstUid: number;
  readonly uidRanges: number;
  /** Who may connect to guests: the user of `spaced-host`. */
  readonly socketUid: number;
  /** A start is refused when the file system of `stateDir` has less left. */
  readonly reserveBytes: number;
  /** By default the native launcher where it has been built, otherwise the portable one. */
  readonly launcher?: LauncherKind;
  /** Further read-only folders, e.g. tools of the worker's own; each target exists in the guest's root. */
  readonly binds?: readonly { readonly source: string; readonly target: string }[];
}

const shmBytes = 64 * 1024 * 1024;

interface Running {
  readonly uidBase: number;
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
  readonly #running = new Map<ActivationId, Running>();
  readonly #exitListeners = new Set<(exit: ExecutionExit) => void>();
  #client: LaunchClient;
  #clientLost = false;

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
    const filter = join(options.stateDir, "seccomp.bpf");
    writeFileSync(filter, assembleSeccomp(guestPolicy, process.arch === "arm64" ? "arm64" : "x64"), {
      mode: 0o600,
    });
    const launcher = chooseLauncher(
      options.launcher,
      join(options.socketDir, "launch"),
      filter,
      options.stateDir,
    );
    const client = await connectLauncher(launcher.command);
    const substrate = new NamespaceSubstrate(options, launcher, client);
    await substrate.#adopt();
    return substrate;
  }

  private constructor(options: NamespaceSubstrateOptions, launcher: Launcher, client: LaunchClient) {
    this.#options = options;
    this.#launcher = launcher;
    this.abilities = launcher.abilities;
    this.#folders = new ActivationFolders(join(options.stateDir, "activations"));
    this.#groups = new ControlGroups(options.controlGroup);
    this.#ranges = new UidRanges(options.firstUid, options.uidRanges);
    this.#disk = new DiskWatch(options.stateDir, (activationId) =>
      this.#end(activationId, "disk limit exceeded"),
    );
    this.#client = client;
    this.#listen(client);
  }

  /** For starting and ending `spaced-host` beside the guests. Becomes another one when the launcher had to be restarted. */
  get launchClient(): LaunchClient {
    return this.#client;
  }

  async start(request: StartRequest): Promise<RunningExecution> {
    const { activationId, limits } = request;
    if (freeBytes(this.#options.stateDir) < this.#options.reserveBytes) {
      throw new SpaceError("host/unfit", {
        problem: "the disk is nearly full",
        remedy: "free space on the worker",
      });
    }
    if (this.#running.has(activationId))
      throw new SpaceError("internal/bug", { where: "activation started twice" });
    const uidBase = this.#ranges.take();
    this.#running.set(activationId, { uidBase });
    try {
      const folder = this.#folders.create(activationId, { uidBase, diskBytes: limits.diskBytes });
      if (request.filesystem !== undefined) {
        await restoreLayer(this.#launcher.inRange, uidBase, folder.upper, request.filesystem);
      }
      const cgroupFiles = this.#groups.create(activationId, limits);
      const started = await (await this.#connected()).start({
        activationId,
        secret: request.activationSecret.reveal(),
        socketPath: this.#socketPath(activationId),
        socketUid: this.#options.socketUid,
        uidBase,
        hostname: request.hostname,
        lowerDir: this.#skeletonPath,
        upperDir: folder.upper,
        workDir: folder.work,
        rootDir: folder.root,
        binds: [
          { source: "/usr", target: "usr", readOnly: true },
          ...(this.#options.binds ?? []).map((bind) => ({ ...bind, readOnly: true })),
        ],
        bootId: randomUUID(),
        cgroupFiles,
        tmpfsLimitBytes: shmBytes,
        fileLimitBytes: limits.diskBytes,
      });
      const evidence = this.#evidence(activationId, started.hostPid, started.startTime);
      this.#disk.add(activationId, { path: folder.upper, limitBytes: limits.diskBytes });
      return { activationId, evidence };
    } catch (cause) {
      await this.#release(activationId, uidBase).catch(() => undefined); // the first failure is the one to report
      throw translate(cause);
    }
  }

  async freeze(activationId: ActivationId): Promise<boolean> {
    if (!this.#running.has(activationId)) return false;
    await this.#groups.freeze(activationId);
    return this.#running.has(activationId);
  }

  async thaw(activationId: ActivationId): Promise<boolean> {
    if (!this.#running.has(activationId)) return false;
    await this.#groups.thaw(activationId);
    return this.#running.has(activationId);
  }

  async *snapshot(activationId: ActivationId): AsyncGenerator<Uint8Array> {
    const note = this.#folders.note(activationId);
    if (note === undefined) throw new SpaceError("substrate/failed", { step: "find the layer" });
    yield* archiveLayer(this.#launcher.inRange, note.uidBase, this.#folders.at(activationId).upper);
  }

  async stop(activationId: ActivationId): Promise<void> {
    const uidBase = this.#running.get(activationId)?.uidBase ?? this.#folders.note(activationId)?.uidBase;
    await this.#release(activationId, uidBase);
  }

  async list(): Promise<readonly RunningExecution[]> {
    const listing = await (await this.#connected()).list();
    return activations(listing).flatMap(({ activationId, hostPid, startTime }) => {
      try {
        return [{ activationId, evidence: this.#evidence(activationId, hostPid, startTime) }];
      } catch {
        return []; // it ended since the launcher answered
      }
    });
  }

  async sweep(keep: ReadonlySet<ActivationId>): Promise<number> {
    const found = new Set<ActivationId>(this.#folders.list());
    for (const { activationId } of activations(await (await this.#connected()).list()))
      found.add(activationId);
    for (const name of [...(await this.#groups.list()), ...readdirSync(this.#options.socketDir)]) {
      const activationId = asActivation(name);
      if (activationId !== undefined) found.add(activationId);
    }
    const left = [...found].filter((activationId) => !keep.has(activationId));
    for (const activationId of left) await this.stop(activationId);
    return left.length;
  }

  onExit(listener: (exit: ExecutionExit) => void): void {
    this.#exitListeners.add(listener);
  }

  async close(how: "stopAll" | "leave"): Promise<void> {
    this.#exitListeners.clear();
    this.#disk.close();
    if (how === "stopAll") {
      await this.sweep(new Set());
      await (await this.#connected()).quit();
      this.#groups.close();
    }
    this.#clientLost = true;
    this.#client.close();
  }

  get #skeletonPath(): string {
    return join(this.#options.stateDir, "skeleton");
  }

  #socketPath(activationId: ActivationId): string {
    return join(this.#options.socketDir, activationId);
  }

  #evidence(activationId: ActivationId, pid: number, startTime: bigint): EndpointEvidence {
    const socketPath = this.#socketPath(activationId);
    const guest = processEvidence(pid);
    const socketInode = listeningInode(socketPath);
    if (guest.startTime !== String(startTime) || socketInode === undefined) {
      throw new SpaceError("endpoint/unverifiable", { problem: "the guest is gone" });
    }
    return { hostBootId: hostBootId(), guest, socketPath, socketInode, cgroup: activationId };
  }

  /** Takes note of what an earlier daemon started, and makes the lower layer when nothing uses it. */
  async #adopt(): Promise<void> {
    const running = activations(await this.#client.list());
    if (running.length === 0) {
      rmSync(this.#skeletonPath, { recursive: true, force: true });
      buildSkeleton(this.#skeletonPath);
    }
    // Every folder holds its range until it is removed, whether its guest runs or not.
    for (const activationId of this.#folders.list()) {
      const note = this.#folders.note(activationId);
      if (note !== undefined) this.#ranges.claim(note.uidBase);
    }
    for (const { activationId } of running) {
      const note = this.#folders.note(activationId);
      if (note === undefined) continue; // not ours to serve: the sweep ends it
      this.#running.set(activationId, { uidBase: note.uidBase });
      this.#disk.add(activationId, {
        path: this.#folders.at(activationId).upper,
        limitBytes: note.diskBytes,
      });
    }
  }

  /** Ends one execution and everything of it. Safe to repeat. The range is free only when nothing owns files in it. */
  async #release(activationId: ActivationId, uidBase: number | undefined): Promise<void> {
    this.#disk.remove(activationId);
    this.#running.delete(activationId);
    // Both at once: a frozen group of cgroup v1 delivers the kill only while `destroy` thaws it.
    await Promise.all([this.#kill(activationId), this.#groups.destroy(activationId)]);
    rmSync(this.#socketPath(activationId), { force: true });
    await this.#folders.remove(activationId);
    if (uidBase !== undefined) this.#ranges.give(uidBase);
  }

  #listen(client: LaunchClient): void {
    client.onExit((exit) => this.#noteExit(exit));
    client.onClose(() => this.#noteLauncherLost());
  }

  /** The launcher: the one at hand, or after its death a new one. */
  async #connected(): Promise<LaunchClient> {
    if (!this.#clientLost) return this.#client;
    this.#client = await connectLauncher(this.#launcher.command);
    this.#clientLost = false;
    this.#listen(this.#client);
    return this.#client;
  }

  async #kill(activationId: ActivationId): Promise<void> {
    try {
      if (!this.#clientLost) await this.#client.kill(activationId);
    } catch (error) {
      // Guests die with their launcher; that nothing is left is proved by the control group, not by this answer.
      if (!(error instanceof GuestConnectionError)) throw error;
    }
  }

  #noteLauncherLost(): void {
    if (this.#clientLost) return;
    this.#clientLost = true;
    for (const activationId of this.#running.keys()) {
      for (const listener of this.#exitListeners) listener({ activationId, reason: "the launcher ended" });
    }
  }

  #noteExit(exit: LaunchExit): void {
    const activationId = asActivation(exit.name);
    const running = activationId === undefined ? undefined : this.#running.get(activationId);
    if (activationId === undefined || running === undefined) return; // a bridge, or one that was stopped
    this.#disk.remove(activationId);
    const signal = exit.waitStatus & 0x7f;
    const reason =
      running.ending ?? (signal === 0 ? `ended with ${exit.waitStatus >> 8}` : `killed by signal ${signal}`);
    for (const listener of this.#exitListeners) listener({ activationId, reason });
  }

  #end(activationId: ActivationId, reason: string): void {
    const running = this.#running.get(activationId);
    if (running === undefined) return;
    running.ending = reason;
    void this.#kill(activationId);
  }
}

function asActivation(name: string): ActivationId | undefined {
  try {
    return parseActivationId(name);
  } catch {
    return undefined; // a bridge's name, or somebody else's folder
  }
}

interface ListedActivation {
  readonly activationId: ActivationId;
  readonly hostPid: number;
  readonly startTime: bigint;
}

function activations(listing: readonly LaunchListing[]): readonly ListedActivation[] {
  return listing.flatMap(({ name, hostPid, startTime, running }) => {
    const activationId = asActivation(name);
    return activationId !== undefined && running ? [{ activationId, hostPid, startTime }] : [];
  });
}

function translate(cause: unknown): unknown {
  if (isSpaceError(cause)) return cause;
  const step = cause instanceof GuestError ? `${cause.step}: ${cause.code}` : "start";
  return new SpaceError("substrate/failed", { step }, { cause });
}
