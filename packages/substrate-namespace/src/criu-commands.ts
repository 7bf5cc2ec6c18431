// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { join } from "node:path";
import type { BindMount } from "@space/spaced-guest";

export const dumpLog = "dump.log";
export const restoreLog = "restore.log";

/** Where the launcher mounts what a restored guest finds, in the restorer's view: see RESTORE in PROTOCOL.md. */
const stage = "/run/stage";

/** A file of the open, but deleted, may be so large and still be saved. */
const ghostLimit = "256M";

/**
 * The guest's control groups, network and mounts are the launcher's to make: CRIU is told to leave them. A guest has no
 * network but its loopback, whose connections have both ends inside.
 */
const common = [
  "-v1",
  "--manage-cgroups=ignore",
  "--empty-ns=net",
  "--tcp-established",
  "--file-locks",
] as const;

/** What the guest finds at these places is not saved with it: the key by which each is known, and its place. */
function externals(binds: readonly BindMount[]): readonly (readonly [key: string, place: string])[] {
  return [
    ...binds.map(({ target }, at) => [`bind${at}`, `/${target}`] as const),
    ["dev", "/dev"],
    ["shm", "/dev/shm"],
    ["boot_id", "/proc/sys/kernel/random/boot_id"],
  ];
}

export interface DumpTarget {
  /** The guest's pid 1, on the host. */
  readonly pid: number;
  /** Where the images go. */
  readonly images: string;
  /** The folder of the control group, frozen before and after. */
  readonly freezer: string;
}

/** Saves a frozen guest, which stays frozen whether it succeeds or not. */
export function dumpArguments(
  { pid, images, freezer }: DumpTarget,
  binds: readonly BindMount[],
): readonly string[] {
  const kept = externals(binds).flatMap(([key, place]) => ["--external", `mnt[${place}]:${key}`]);
  return [
    "dump",
    ...["-t", String(pid), "-D", images, "-o", dumpLog, "--leave-running", "--freeze-cgroup", freezer],
    ...["--network-lock", "skip", "--ghost-limit", ghostLimit],
    ...common,
    ...kept,
  ];
}

export interface RestorePlaces {
  /** Raises the loopback, when CRIU has made the guest's namespaces. */
  readonly hook: string;
  /** Takes CRIU's place once it has succeeded, and keeps what it has restored. */
  readonly launcher: string;
}

export function restoreArguments(
  { hook, launcher }: RestorePlaces,
  binds: readonly BindMount[],
): readonly string[] {
  const images = join(stage, "images");
  const pidFile = join(images, "pid");
  const found = externals(binds).flatMap(([key]) => ["--external", `mnt[${key}]:${join(stage, key)}`]);
  return [
    "restore",
    ...["-D", images, "-o", restoreLog, "--root", join(stage, "root"), "--pidfile", pidFile],
    ...["--action-script", hook],
    ...common,
    ...found,
    ...["--exec-cmd", "--", launcher, "--keep", pidFile],
  ];
}
