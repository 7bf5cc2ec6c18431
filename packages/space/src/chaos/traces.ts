// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Dirent, existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** What tells an installation's things on the host from everybody else's. */
export interface InstallationMarks {
  /** Its data directory, and the folder of its sockets. */
  readonly folders: readonly string[];
  /** Names of its workers' control groups. */
  readonly groups: readonly string[];
}

/** What the kernel holds of an installation, by kind, each with its sorted names. */
export type Traces = Readonly<Record<string, readonly string[]>>;

const groupDepth = 6;
const namespaceKinds = ["net", "pid", "user", "mnt", "ipc", "uts"] as const;

/**
 * Everything of an installation that is on the host: processes that name its folders, or are in its control groups, whatever
 * they call themselves; the namespaces that these are in and this process is not; mounts, control groups, sockets and files.
 * Kinds of which there is nothing are left out.
 */
export function tracesOf({ folders, groups }: InstallationMarks): Traces {
  const named = (text: string): boolean => [...folders, ...groups].some((mark) => text.includes(mark));
  const ours = pids().filter(
    (pid) => pid !== String(process.pid) && (named(commandOf(pid)) || named(read(`/proc/${pid}/cgroup`))),
  );
  const found: Traces = {
    processes: ours.map((pid) => `${pid} ${commandOf(pid)}`),
    namespaces: ours.flatMap(foreignNamespaces),
    mounts: lines("/proc/self/mountinfo").filter(named),
    controlGroups: controlGroups("/sys/fs/cgroup", groupDepth).filter(named),
    sockets: lines("/proc/net/unix").filter((line) => folders.some((folder) => line.includes(folder))),
    files: folders.filter((folder) => existsSync(folder)),
  };
  const kinds = Object.entries(found).map(([kind, names]) => [kind, [...new Set(names)].sort()] as const);
  return Object.fromEntries(kinds.filter(([, names]) => names.length > 0));
}

/** What a worker holds of sandboxes, although there is none: guests, their mounts and groups, and folders of executions. */
export function sandboxTraces(marks: InstallationMarks): Traces {
  const { processes: _, namespaces: _own, files: _files, sockets: _sockets, ...held } = tracesOf(marks);
  const ofExecutions = Object.entries(held).map(
    ([kind, names]) => [kind, names.filter((name) => /act_[0-9a-z]+/.test(name))] as const,
  );
  const folders = marks.folders.flatMap((folder) => executionFolders(folder, groupDepth));
  const kinds = [...ofExecutions, ["folders", folders] as const];
  return Object.fromEntries(kinds.filter(([, names]) => names.length > 0));
}

function executionFolders(folder: string, depth: number): readonly string[] {
  return entries(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name.startsWith("act_")) return [path];
    return entry.isDirectory() && depth > 1 ? executionFolders(path, depth - 1) : [];
  });
}

function foreignNamespaces(pid: string): readonly string[] {
  return namespaceKinds.flatMap((kind) => {
    const [theirs, mine] = [link(`/proc/${pid}/ns/${kind}`), link(`/proc/self/ns/${kind}`)];
    return theirs === undefined || theirs === mine ? [] : [theirs];
  });
}

function controlGroups(folder: string, depth: number): readonly string[] {
  if (depth === 0) return [];
  const inside = entries(folder).filter((entry) => entry.isDirectory());
  return inside.flatMap(({ name }) => [join(folder, name), ...controlGroups(join(folder, name), depth - 1)]);
}

function entries(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // it went away while it was looked for
  }
}

function pids(): readonly string[] {
  return readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
}

function commandOf(pid: string): string {
  return read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
}

function lines(path: string): readonly string[] {
  return read(path).split("\n").filter(Boolean);
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process ended while it was read
  }
}

function link(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // the process ended while it was read
  }
}
