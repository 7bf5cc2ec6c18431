// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** What a run may leave behind on the host, as sorted names, so that a difference can be shown. */
export interface HostResources {
  readonly processes: readonly string[];
  readonly mounts: readonly string[];
  readonly controlGroups: readonly string[];
  readonly networkNamespaces: readonly string[];
  readonly sockets: readonly string[];
}

/** Everything on the host that SPACE may have made, seen from the kernel. */
export function hostResources(): HostResources {
  return {
    processes: pids()
      .flatMap((pid) => spaceProcess(pid))
      .sort(),
    mounts: lines("/proc/self/mountinfo")
      .map((line) => line.split(" ").slice(3, 5).join(" "))
      .sort(),
    controlGroups: [...controlGroups("/sys/fs/cgroup", 5)].sort(),
    networkNamespaces: [...new Set(pids().flatMap((pid) => link(`/proc/${pid}/ns/net`)))].sort(),
    sockets: lines("/proc/net/unix")
      .map((line) => line.trim().split(/\s+/)[7] ?? "")
      .filter((path) => /^\/(run|dev\/shm)\/space/.test(path))
      .sort(),
  };
}

/** What is in `after` and was not in `before`. */
export function leftBehind(
  before: HostResources,
  after: HostResources,
): Readonly<Record<string, readonly string[]>> {
  const left: Record<string, readonly string[]> = {};
  for (const kind of ["processes", "mounts", "controlGroups", "networkNamespaces", "sockets"] as const) {
    const known = new Set(before[kind]);
    const more = after[kind].filter((name) => !known.has(name));
    if (more.length > 0) left[kind] = more;
  }
  return left;
}

function pids(): readonly string[] {
  return readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
}

function spaceProcess(pid: string): readonly string[] {
  const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
  return /spaced-launch|spaced-guest|packages\/space\/|portable-/.test(command) ? [`${pid} ${command}`] : [];
}

function controlGroups(folder: string, depth: number): readonly string[] {
  if (depth === 0) return [];
  let entries: readonly string[];
  try {
    entries = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${folder}/${entry.name}`);
  } catch {
    return []; // it went away while the tree was read
  }
  return entries.flatMap((path) => [
    ...(path.includes("/space-") ? [path] : []),
    ...controlGroups(path, depth - 1),
  ]);
}

function lines(path: string): readonly string[] {
  return read(path)
    .split("\n")
    .filter((line) => line !== "");
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process ended while it was read
  }
}

function link(path: string): readonly string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return []; // the process ended while it was read
  }
}
