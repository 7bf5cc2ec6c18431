// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ExecutionLimits, SpaceError } from "@space/model";
import { closeDescriptor, openPidFd, signalPidFd } from "./system-calls.ts";

const root = "/sys/fs/cgroup";
const periodMicroseconds = 100_000;
const sigkill = 9;

/** One hierarchy that a group is made in. */
interface Hierarchy {
  readonly folder: string;
  /**
   * The file by which a process enters. In v1 a thread that enters `tasks` by itself takes none of the global locks that
   * `cgroup.procs` waits for (up to 12 ms); in v2 the launcher's clone enters directly.
   */
  readonly entrance: "tasks" | "cgroup.procs";
  readonly limits: (limits: ExecutionLimits) => readonly (readonly [file: string, value: string])[];
}

const cpuQuota = ({ cpus }: ExecutionLimits): number => Math.max(1000, Math.round(cpus * periodMicroseconds));

const memoryV1: Hierarchy["limits"] = ({ memoryBytes }) => [["memory.limit_in_bytes", String(memoryBytes)]];
const cpuV1: Hierarchy["limits"] = (limits) => [["cpu.cfs_quota_us", String(cpuQuota(limits))]];
const pids: Hierarchy["limits"] = ({ processes }) => [["pids.max", String(processes)]];
const unified: Hierarchy["limits"] = (limits) => [
  ["memory.max", String(limits.memoryBytes)],
  ["memory.swap.max", "0"],
  ["memory.oom.group", "0"],
  ["cpu.max", `${cpuQuota(limits)} ${periodMicroseconds}`],
  ["pids.max", String(limits.processes)],
];

/**
 * Control groups of this host, one tree for all executions of one worker. Knows the unified hierarchy (v2) and the older
 * split one (v1) with a v2 mount beside it, whose `cgroup.freeze` and `cgroup.kill` work without controllers.
 */
export class ControlGroups {
  readonly #name: string;
  readonly #hierarchies: readonly Hierarchy[];
  readonly #freezer: { readonly folder: string; readonly version: 1 | 2 };

  /** `name` is one path component, the same for every start of the same worker. Throws `host/unfit` or `substrate/failed`. */
  constructor(name: string) {
    this.#name = name;
    const version2 = existsSync(join(root, "cgroup.controllers"));
    const found = version2 ? unifiedHierarchy(name) : splitHierarchies(name);
    this.#hierarchies = found.hierarchies;
    this.#freezer = found.freezer;
    for (const folder of this.#parents()) mkdirSync(folder, { recursive: true });
    if (version2) enableControllers(join(root, name));
  }

  /** Makes the group with its limits and returns the files into which its first process writes itself. */
  create(group: string, limits: ExecutionLimits): readonly string[] {
    for (const { folder } of this.#hierarchies) makeFolder(join(folder, group));
    this.limit(group, limits);
    return this.#hierarchies.map(({ folder, entrance }) => join(folder, group, entrance));
  }

  /** Gives a group that exists other limits. */
  limit(group: string, limits: ExecutionLimits): void {
    for (const { folder, limits: values } of this.#hierarchies) {
      for (const [file, value] of values(limits)) writeLimit(join(folder, group, file), value);
    }
  }

  /** Stops every process of the group without ending it. Resolves when the kernel says that all are frozen. */
  async freeze(group: string): Promise<void> {
    await this.#setFrozen(group, true);
  }

  async thaw(group: string): Promise<void> {
    await this.#setFrozen(group, false);
  }

  /** From the kernel's view. Throws `substrate/failed` when there is no such group. */
  async isFrozen(group: string): Promise<boolean> {
    try {
      return this.#reached(group, true);
    } catch (cause) {
      throw new SpaceError("substrate/failed", { step: "read the freezer" }, { cause });
    }
  }

  /** The folder whose files freeze the group. */
  freezerOf(group: string): string {
    return join(this.#freezer.folder, group);
  }

  /** Whether a frozen process dies of SIGKILL at once; with the freezer of v1 it must be thawed for that. */
  get killsFrozen(): boolean {
    return this.#freezer.version === 2;
  }

  /** Pids in the group, from the kernel's view. Empty when there is no such group. */
  async processes(group: string): Promise<readonly number[]> {
    const pids = await Promise.all(
      this.#hierarchies.map(({ folder }) =>
        readFile(join(folder, group, "cgroup.procs"), "utf8").catch(() => ""),
      ),
    );
    return [
      ...new Set(
        pids.flatMap((text) =>
          text
            .split("\n")
            .filter((line) => line !== "")
            .map(Number),
        ),
      ),
    ];
  }

  /** Incident 12: kills every process of the group and resolves when none is left and the group is gone. */
  async destroy(group: string): Promise<void> {
    const deadlineRounds = 2000;
    for (let round = 0; round < deadlineRounds; round++) {
      if (this.#remove(group)) return; // the kernel removes no group that holds a process: this is the proof
      await this.#kill(group);
      await new Promise((resolve) => setImmediate(resolve));
    }
    throw new SpaceError("substrate/failed", { step: "empty the control group" });
  }

  /** Groups that exist now. */
  async list(): Promise<readonly string[]> {
    const names = await Promise.all(
      this.#parents().map((folder) => readdir(folder, { withFileTypes: true }).catch(() => [])),
    );
    return [
      ...new Set(
        names
          .flat()
          .filter((entry) => entry.isDirectory())
          .map((entry) => entry.name),
      ),
    ];
  }

  /** Removes the worker's own level when no group is left in it. */
  close(): void {
    for (const folder of this.#parents()) removeFolder(folder);
  }

  #parents(): readonly string[] {
    return this.#hierarchies.map(({ folder }) => folder);
  }

  async #kill(group: string): Promise<void> {
    const killFile = join(this.#freezer.folder, group, "cgroup.kill");
    if (this.#freezer.version === 2 && existsSync(killFile)) {
      writeFileSync(killFile, "1");
      return;
    }
    await this.#signalMembers(group);
    if (this.#freezer.version === 1) await this.#setFrozen(group, false).catch(() => undefined);
  }

  /**
   * Incident 23: by descriptors that are opened first, and only what the kernel still lists in the group then: a pid that
   * came to mean another process since it was listed is not in it any more.
   */
  async #signalMembers(group: string): Promise<void> {
    const listed = await this.processes(group);
    const held = listed.map((pid) => ({ pid, pidFd: openPidFd(pid) })).filter(({ pidFd }) => pidFd >= 0);
    try {
      const members = new Set(await this.processes(group));
      for (const { pid, pidFd } of held) if (members.has(pid)) signalPidFd(pidFd, sigkill);
    } finally {
      for (const { pidFd } of held) closeDescriptor(pidFd);
    }
  }

  async #setFrozen(group: string, frozen: boolean): Promise<void> {
    const folder = join(this.#freezer.folder, group);
    const v2 = this.#freezer.version === 2;
    const file = join(folder, v2 ? "cgroup.freeze" : "freezer.state");
    try {
      writeFileSync(file, v2 ? String(frozen ? 1 : 0) : frozen ? "FROZEN" : "THAWED");
      for (let round = 0; round < 20_000; round++) {
        if (this.#reached(group, frozen)) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (cause) {
      throw new SpaceError("substrate/failed", { step: frozen ? "freeze" : "thaw" }, { cause });
    }
    throw new SpaceError("substrate/failed", { step: frozen ? "freeze" : "thaw" });
  }

  #reached(group: string, frozen: boolean): boolean {
    const folder = join(this.#freezer.folder, group);
    if (this.#freezer.version === 2)
      return readFileSync(join(folder, "cgroup.events"), "utf8").includes(`frozen ${frozen ? 1 : 0}`);
    return readFileSync(join(folder, "freezer.state"), "utf8").trim() === (frozen ? "FROZEN" : "THAWED");
  }

  #remove(group: string): boolean {
    return this.#hierarchies.map(({ folder }) => removeFolder(join(folder, group))).every((gone) => gone);
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error; // made by an earlier try
  }
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function removeFolder(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return isErrno(error, "ENOENT");
  }
}

/** A limit that this kernel's hierarchy does not have (no swap accounting, say) is not an error; a refused one is. */
function writeLimit(path: string, value: string): void {
  let fd: number | undefined;
  try {
    fd = openSync(path, "r+");
    writeSync(fd, value);
  } catch (cause) {
    if (fd === undefined && isErrno(cause, "ENOENT")) return;
    throw new SpaceError("substrate/failed", { step: "set a limit of the control group" }, { cause });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function unifiedHierarchy(name: string) {
  const folder = join(root, name);
  return {
    hierarchies: [{ folder, limits: unified, entrance: "cgroup.procs" as const }],
    freezer: { folder, version: 2 as const },
  };
}

/** v1: each controller has its own tree; groups are made under this process's own path, so that outer limits hold. */
function splitHierarchies(name: string) {
  const mine = ownPaths();
  const at = (controller: string): string => join(root, controller, mine.get(controller) ?? "/", name);
  const hierarchies: Hierarchy[] = [
    { folder: at("memory"), limits: memoryV1, entrance: "tasks" as const },
    { folder: at("cpu"), limits: cpuV1, entrance: "tasks" as const },
    { folder: at("pids"), limits: pids, entrance: "tasks" as const },
  ].filter(({ folder }) => existsSync(dirname(folder)));
  if (hierarchies.length < 3) {
    const problem = "the memory, cpu and pids control groups are not all there";
    throw new SpaceError("host/unfit", { problem, remedy: "mount cgroup v2 at /sys/fs/cgroup" });
  }
  if (existsSync(join(root, "unified/cgroup.procs"))) {
    const folder = join(root, "unified", name);
    hierarchies.push({ folder, limits: () => [], entrance: "cgroup.procs" });
    return { hierarchies, freezer: { folder, version: 2 as const } };
  }
  const folder = at("freezer");
  hierarchies.push({ folder, limits: () => [], entrance: "tasks" });
  return { hierarchies, freezer: { folder, version: 1 as const } };
}

/** controller → this process's path in that hierarchy. */
function ownPaths(): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const line of readFileSync("/proc/self/cgroup", "utf8").split("\n")) {
    const [, controllers = "", path = "/"] = /^[0-9]+:([^:]*):(.*)$/.exec(line) ?? [];
    for (const controller of controllers.split(",")) paths.set(controller, path);
  }
  return paths;
}

/** v2 gives a group's children only the controllers that each level above has handed on. */
function enableControllers(folder: string): void {
  for (const level of [root, folder]) {
    try {
      writeFileSync(join(level, "cgroup.subtree_control"), "+memory +cpu +pids");
    } catch (cause) {
      const problem = `cgroup v2 does not hand memory, cpu and pids on at ${level}`;
      throw new SpaceError("host/unfit", { problem, remedy: "delegate these controllers" }, { cause });
    }
  }
}
