// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chmodSync, createWriteStream, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { type ActivationId, SpaceError } from "@space/model";
import { type ControlGroups, holdsSocket, listeningInode } from "@space/platform-linux";
import { type BindMount, type LaunchExit, nativeLauncherPath, type RestoreRecord } from "@space/spaced-guest";
import type { ByteReader } from "./byte-reader.ts";
import { dumpArguments, dumpLog, restoreArguments, restoreLog } from "./criu-commands.ts";
import type { CriuProgram } from "./criu-program.ts";
import { lastWords, refusalIn, unsavable } from "./criu-refusal.ts";
import { guestName, tracedOf } from "./guest-names.ts";
import { GuestPrograms, programTarget } from "./guest-programs.ts";
import { isQuiet, midCall } from "./guest-stillness.ts";
import { endingOf, type LauncherLink } from "./launcher-link.ts";
import { archiveLayer, type RangeRunner } from "./layer-archive.ts";
import { asActivation } from "./listed-activations.ts";
import {
  archiveMemory,
  type MemoryNote,
  type MemoryOrigin,
  programName,
  sharedMemoryName,
  unpackMemory,
} from "./memory-archive.ts";
import { processorFeatures } from "./processor-features.ts";
import { moveUserIds } from "./user-namespace-image.ts";

const quietLimitMs = 3_000;
const lookEveryMs = 2;
/** How often a frozen guest is let run for a moment because one of its tasks is in the middle of a call. */
const freezeTries = 50;
/** As long as writing all of a guest's memory may take. */
const dumpLimitMs = 300_000;
const goOnLimitMs = 10_000;

export interface MemoryPorts {
  readonly link: LauncherLink;
  readonly groups: ControlGroups;
  readonly inRange: RangeRunner;
  /** The launcher's `--socket`, beside which its /run for CRIU is. */
  readonly launcherSocket: string;
  /** Programs and images; every parent is traversable. */
  readonly stateDir: string;
}

/** What a driver knows of a guest that is to be saved. */
export interface SavedGuest {
  readonly activationId: ActivationId;
  readonly pid: number;
  readonly group: string;
  readonly uidBase: number;
  readonly socketPath: string;
}

/** What a guest is to be made of. */
export interface NewGuest {
  readonly activationId: ActivationId;
  readonly uidBase: number;
  readonly upper: string;
  readonly binds: readonly BindMount[];
}

/** What a restored guest is started with beside its start record. */
export type RestorePart = Pick<RestoreRecord, "argv" | "imagesDir" | "bootId" | "binds">;

/** Saves guests with their memory by CRIU, and restores them. See README.md for what it promises. */
export class MemorySnapshots {
  readonly #criu: CriuProgram;
  readonly #ports: MemoryPorts;
  readonly #programs: GuestPrograms;
  readonly #origin: MemoryOrigin;
  readonly #images: string;
  readonly #dumps = new Map<string, (exit: LaunchExit | undefined) => void>();

  constructor(criu: CriuProgram, ports: MemoryPorts) {
    this.#criu = criu;
    this.#ports = ports;
    this.#programs = new GuestPrograms(join(ports.stateDir, "programs"), nativeLauncherPath);
    this.#images = join(ports.stateDir, "images");
    mkdirSync(this.#images, { recursive: true, mode: 0o700 });
    this.#origin = { criu: criu.version, features: processorFeatures() };
  }

  /** What guests are made of beside `binds`, so that they can be saved. */
  recipe(binds: readonly BindMount[]): {
    readonly programPath: string;
    readonly binds: readonly BindMount[];
  } {
    return { programPath: `/${programTarget}`, binds: withProgram(binds, this.#programs.current) };
  }

  /** Takes note of what the launcher says of a dump. Whether it was of one. */
  noteExit(exit: LaunchExit): boolean {
    const settle = this.#dumps.get(exit.name);
    settle?.(exit);
    return settle !== undefined;
  }

  noteLauncherLost(): void {
    for (const settle of this.#dumps.values()) settle(undefined);
  }

  /**
   * Freezes a guest so that it can be saved: once nothing of the host's reaches in, and none of its tasks is in the middle of
   * a call. Throws `substrate/failed`, step "quiesce", or `snapshot/unsavable`, with the guest running on.
   */
  async freeze({ pid, group }: SavedGuest): Promise<void> {
    const { groups } = this.#ports;
    await groups.thaw(group);
    const end = performance.now() + quietLimitMs;
    while (!isQuiet(pid)) {
      if (performance.now() > end) throw new SpaceError("substrate/failed", { step: "quiesce" });
      await pause(lookEveryMs);
    }
    for (let tries = 0; tries < freezeTries; tries += 1) {
      await groups.freeze(group);
      const pids = await groups.processes(group);
      const traced = tracedOf(pids);
      if (traced !== undefined) {
        await groups.thaw(group);
        throw unsavable(
          guestName(traced) ?? "a process",
          "it is traced by another process",
          "end its debugger",
        );
      }
      if (midCall(pids).length === 0) return;
      await groups.thaw(group);
      await pause(lookEveryMs);
    }
    throw unsavable("a process", "it waits in a call that nothing interrupts", "try again");
  }

  /** Has a guest that has let go of its socket listen again; one that has not goes on as it is. Throws `substrate/failed`. */
  async letGoOn(guest: SavedGuest): Promise<void> {
    if (listens(guest)) return;
    const client = await this.#ports.link.connected();
    const late = new AbortController();
    try {
      await Promise.race([
        client.goOn(guest.activationId),
        pause(goOnLimitMs, undefined, { signal: late.signal, ref: false }).then(() => {
          throw new SpaceError("substrate/failed", { step: "go on" });
        }),
      ]);
    } finally {
      late.abort();
    }
  }

  /**
   * The memory of a guest that was frozen by `freeze`, as an archive that a layer's can follow. Throws `snapshot/unsavable`
   * with the guest still frozen and whole, or `snapshot/fatal`.
   */
  async *save(guest: SavedGuest | undefined, binds: readonly BindMount[]): AsyncGenerator<Uint8Array> {
    if (guest === undefined || listens(guest) || !(await this.#ports.groups.isFrozen(guest.group)))
      throw new SpaceError("substrate/failed", { step: "stand still" });
    const folder = this.#makeFolder(guest.activationId);
    try {
      const program = this.#programs.of(guest.pid);
      await this.#dump(guest, folder, binds);
      await copyFile(program.path, join(folder, programName));
      await this.#saveSharedMemory(guest, folder);
      const bootId = readFileSync(`/proc/${guest.pid}/root/proc/sys/kernel/random/boot_id`, "utf8").trim();
      yield* archiveMemory(folder, { ...this.#origin, program: program.digest, bootId });
    } finally {
      this.forget(guest.activationId);
    }
  }

  /**
   * Takes the memory out of an archive, for a guest with this range. What it has written is there until `forget`. Throws
   * `snapshot/refused`.
   */
  async unpack(
    reader: ByteReader,
    { activationId, uidBase, binds }: Omit<NewGuest, "upper">,
  ): Promise<RestorePart> {
    const folder = this.#makeFolder(activationId);
    const note: MemoryNote = await unpackMemory(folder, this.#origin, reader);
    const program = this.#programs.bring(join(folder, programName), note.program);
    moveUserIds(folder, uidBase);
    // The guest's processes read them as they become themselves; nobody but root has a way to the folder.
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644);
    chmodSync(folder, 0o711);
    const places = { hook: nativeLauncherPath, launcher: nativeLauncherPath };
    const found = withProgram(binds, program);
    return {
      argv: [...this.#criu.argv, ...restoreArguments(places, found)],
      imagesDir: folder,
      bootId: note.bootId,
      binds: found,
    };
  }

  /** Why CRIU did not restore what was unpacked there. */
  refusal(activationId: string, cause: unknown): SpaceError<"snapshot/refused"> {
    const said = lastWords(readLog(join(this.#images, activationId, restoreLog)));
    return new SpaceError("snapshot/refused", { problem: `CRIU does not restore it: ${said}` }, { cause });
  }

  /** Removes what there is of an activation's images. */
  forget(activationId: string): void {
    rmSync(join(this.#images, activationId), { recursive: true, force: true });
  }

  /** Activations of which there are images. */
  list(): readonly ActivationId[] {
    return readdirSync(this.#images).flatMap((name) => asActivation(name) ?? []);
  }

  #makeFolder(activationId: ActivationId): string {
    this.forget(activationId); // of an attempt that was cut short
    const folder = join(this.#images, activationId);
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  }

  async #dump(guest: SavedGuest, folder: string, binds: readonly BindMount[]): Promise<void> {
    const { link, groups, launcherSocket } = this.#ports;
    const name = `dump-${guest.activationId}`;
    const target = { pid: guest.pid, images: folder, freezer: groups.freezerOf(guest.group) };
    const criu = [...this.#criu.argv, ...dumpArguments(target, withProgram(binds, this.#programs.current))];
    const ended = this.#endOf(name);
    try {
      await (await link.connected()).run({
        activationId: name,
        argv: [nativeLauncherPath, "--with-run", `${launcherSocket}.run`, ...criu],
        env: {},
        stderrPath: join(folder, "criu.err"),
        cgroupFiles: [],
      });
    } catch (cause) {
      this.#dumps.get(name)?.(undefined);
      throw cause;
    }
    const exit = await ended;
    if (exit?.waitStatus === 0) return;
    const log = readLog(join(folder, dumpLog));
    // It ends by itself when it has let go of the guest's processes; cut short, it may have left them in its own code.
    const isOrderly = exit !== undefined && (exit.waitStatus & 0x7f) === 0;
    if (isOrderly) throw refusalIn(log, guestName);
    const cause = new Error(exit === undefined ? "the launcher ended" : endingOf(exit));
    throw new SpaceError("snapshot/fatal", { problem: "CRIU was cut short" }, { cause });
  }

  #endOf(name: string): Promise<LaunchExit | undefined> {
    return new Promise((resolve) => {
      const late = setTimeout(() => void this.#ports.link.kill(name), dumpLimitMs);
      this.#dumps.set(name, (exit) => {
        clearTimeout(late);
        this.#dumps.delete(name);
        resolve(exit);
      });
    });
  }

  async #saveSharedMemory({ pid, uidBase }: SavedGuest, folder: string): Promise<void> {
    const held = `/proc/${pid}/root/dev/shm`;
    if (readdirSync(held).length === 0) return;
    const archive = archiveLayer(this.#ports.inRange, uidBase, held);
    await pipeline(archive, createWriteStream(join(folder, sharedMemoryName), { mode: 0o600 }));
  }
}

/** One that has let go of its socket has left it with the launcher. */
function listens({ socketPath, pid }: SavedGuest): boolean {
  const inode = listeningInode(socketPath);
  return inode !== undefined && holdsSocket(pid, inode);
}

function withProgram(binds: readonly BindMount[], program: string): readonly BindMount[] {
  return [...binds, { source: program, target: programTarget, readOnly: true }];
}

function readLog(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // it came not so far
  }
}
