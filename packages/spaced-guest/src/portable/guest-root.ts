// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chmodSync, chownSync, closeSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GuestError } from "../guest-error.ts";
import type { StartRecord } from "../launch-protocol.ts";
import { checked, during, libc } from "./libc.ts";
import {
  attachAt,
  attachInside,
  cloneTree,
  MountAttribute,
  MountFlag,
  mountAt,
  setAttributes,
} from "./mount-calls.ts";
import { cloneProgram, closeAll, openPath, openStage, stage } from "./stage.ts";

const mknod = libc.func("int mknod(const char *path, uint32_t mode, uint64_t device)");

const quiet = MountAttribute.noSetuid | MountAttribute.noDevices;
const { noSetuid, noDevices, noExec } = MountFlag;
const terminalGroup = 5;

const nodes: readonly (readonly [name: string, major: number, minor: number])[] = [
  ["null", 1, 3],
  ["zero", 1, 5],
  ["full", 1, 7],
  ["random", 1, 8],
  ["urandom", 1, 9],
  ["tty", 5, 0],
];

const links: Readonly<Record<string, string>> = {
  fd: "/proc/self/fd",
  stdin: "/proc/self/fd/0",
  stdout: "/proc/self/fd/1",
  stderr: "/proc/self/fd/2",
  ptmx: "pts/ptmx",
};

/**
 * Assembles a guest's tree at the stage, with the host's rights and in a mount namespace of its own. Everything is found
 * on the host first; inside the guest's tree no symlink is ever followed. Throws `GuestError`.
 */
export function buildGuestRoot(record: StartRecord, userNamespace: number): void {
  const binds = record.binds.map(({ source, target, readOnly }) => {
    const tree = cloneTree(source, false, "bind");
    setAttributes(tree, quiet | (readOnly ? MountAttribute.readOnly : 0), userNamespace, "bind");
    return { tree, target };
  });
  const lower = cloneTree(record.lowerDir, false, "lower");
  setAttributes(lower, quiet | MountAttribute.readOnly, userNamespace, "lower");
  const layers = during("layers", () => [openPath(record.upperDir), openPath(record.workDir)]);
  const showProgram = cloneProgram(userNamespace);
  openStage();
  showProgram();
  mountOverlay(lower, layers);
  const root = during("overlay", () => openPath(stage.root));
  for (const { tree, target } of binds) attachInside(tree, root, target, "bind-target");
  mountProcesses(record);
  mountDevices(record, userNamespace);
  attachInside(cloneTree(stage.processes, true, "proc"), root, "proc", "proc");
  attachInside(cloneTree(stage.devices, true, "dev"), root, "dev", "dev");
  closeSync(root);
}

function mountOverlay(lower: number, layers: readonly number[]): void {
  attachAt(lower, stage.root, "lower");
  const all = [openPath(stage.root), ...layers];
  // Descriptors instead of paths: the guest reads these options in /proc/mounts and learns nothing about the host.
  const [below, upper, work] = all.map((fd) => `/proc/self/fd/${fd}`);
  const options = `lowerdir=${below},upperdir=${upper},workdir=${work},userxattr,volatile`;
  mountAt(
    { type: "overlay", source: "root", target: stage.root, flags: noSetuid | noDevices, options },
    "overlay",
  );
  closeAll(all);
}

function mountProcesses(record: StartRecord): void {
  mountAt({ type: "proc", target: stage.processes, flags: noSetuid | noDevices | noExec }, "proc");
  // One file system for two things: the shared memory folder and the boot id.
  const options = `size=${record.tmpfsLimitBytes},nr_inodes=16384,mode=0755`;
  mountAt({ type: "tmpfs", target: stage.memory, flags: noSetuid | noDevices, options }, "shm");
  const bootId = join(stage.memory, "boot_id");
  const shared = join(stage.memory, "shm");
  during("boot-id", () => writeFileSync(bootId, `${record.bootId}\n`, { mode: 0o444, flag: "wx" }));
  during("shm", () => {
    mkdirSync(shared);
    chownSync(shared, record.uidBase, record.uidBase);
    chmodSync(shared, 0o1777);
  });
  const tree = cloneTree(bootId, false, "boot-id");
  setAttributes(tree, quiet | MountAttribute.readOnly, undefined, "boot-id");
  attachAt(tree, join(stage.processes, "sys/kernel/random/boot_id"), "boot-id");
}

function mountDevices(record: StartRecord, userNamespace: number): void {
  const at = (name: string): string => join(stage.devices, name);
  const options = "mode=0755,size=64k,nr_inodes=32";
  mountAt({ type: "tmpfs", target: stage.devices, flags: noSetuid | noExec, options }, "dev");
  for (const [name, major, minor] of nodes) {
    checked(mknod(at(name), 0o020_666, BigInt(major * 256 + minor)), "dev");
    chmodSync(at(name), 0o666);
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, at(name));
  mkdirSync(at("pts"));
  mkdirSync(at("shm"));
  const group = record.uidBase + terminalGroup;
  const terminals = `newinstance,ptmxmode=0666,mode=0620,gid=${group}`;
  mountAt({ type: "devpts", target: at("pts"), flags: noSetuid | noExec, options: terminals }, "devpts");
  attachAt(cloneTree(join(stage.memory, "shm"), false, "shm"), at("shm"), "shm");
  const devices = cloneTree(stage.devices, true, "dev");
  const sealed = MountAttribute.noSetuid | MountAttribute.noExec | MountAttribute.readOnly;
  setAttributes(devices, sealed, undefined, "dev");
  try {
    setAttributes(devices, 0, userNamespace, "dev"); // cosmetic: owners show as root; only newer kernels map a tmpfs
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
  }
  attachAt(devices, stage.devices, "dev");
}
