// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { closeSync, constants } from "node:fs";
import { callNumbers, checked, libc } from "./libc.ts";

const callTree = libc.func("long syscall(long number, int dir, const char *path, uint32_t flags)");
const callAttributes = libc.func(
  "long syscall(long number, int fd, const char *path, uint32_t flags, const uint8_t *attr, size_t size)",
);
const callMove = libc.func(
  "long syscall(long number, int fd, const char *path, int toFd, const char *to, uint32_t flags)",
);
const callOpen = libc.func(
  "long syscall(long number, int dir, const char *path, const uint8_t *how, size_t size)",
);
const callPivot = libc.func("long syscall(long number, const char *root, const char *old)");
const callMount = libc.func(
  "int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)",
);
const callUnmount = libc.func("int umount2(const char *target, int flags)");

/** Attributes of one mount (MOUNT_ATTR_*). */
export const MountAttribute = { readOnly: 1, noSetuid: 2, noDevices: 4, noExec: 8 } as const;
/** Flags of mount(2) (MS_*). */
export const MountFlag = {
  readOnly: 1,
  noSetuid: 2,
  noDevices: 4,
  noExec: 8,
  remount: 32,
  bind: 4096,
  recursive: 16_384,
} as const;

const attributeIdMap = 0x10_0000;
const currentFolder = -100; // AT_FDCWD
const emptyPath = 0x1000;
const closeOnExec = 0x8_0000;
const pathOnly = 0x20_0000; // O_PATH
const detach = 2; // MNT_DETACH

/** A copy of what is mounted at `path`, attached nowhere. The caller closes the descriptor. */
export function cloneTree(path: string, recursive: boolean, step: string): number {
  const flags = 1 | closeOnExec | (recursive ? 0x8000 : 0);
  return checked(callTree(428, currentFolder, path, flags), step);
}

/** Sets attributes of the mount behind `fd`; with `userNamespace` its owners are mapped through that namespace. */
export function setAttributes(
  fd: number,
  attributes: number,
  userNamespace: number | undefined,
  step: string,
): void {
  const attr = Buffer.alloc(32);
  attr.writeBigUInt64LE(BigInt(attributes | (userNamespace === undefined ? 0 : attributeIdMap)), 0);
  attr.writeBigUInt64LE(BigInt(userNamespace ?? 0), 24);
  checked(callAttributes(442, fd, "", emptyPath, attr, attr.length), step);
}

/**
 * A place in a guest's tree, without following any symlink: the tree may come from a snapshot that a hostile guest has
 * prepared. The caller closes the descriptor.
 */
export function openTarget(rootFd: number, path: string, step: string): number {
  const how = Buffer.alloc(24);
  how.writeBigUInt64LE(BigInt(pathOnly | closeOnExec | constants.O_NOFOLLOW), 0);
  how.writeBigUInt64LE(BigInt(0x04 | 0x10), 16); // RESOLVE_NO_SYMLINKS, RESOLVE_IN_ROOT
  return checked(callOpen(437, rootFd, path, how, how.length), step);
}

/** Attaches a detached mount at a trusted path and closes it. */
export function attachAt(fd: number, path: string, step: string): void {
  checked(callMove(429, fd, "", currentFolder, path, 0x04), step);
  closeSync(fd);
}

/** Attaches a detached mount inside a guest's tree and closes it. */
export function attachInside(fd: number, rootFd: number, path: string, step: string): void {
  const target = openTarget(rootFd, path, step);
  try {
    checked(callMove(429, fd, "", target, "", 0x04 | 0x40), step);
  } finally {
    closeSync(target);
    closeSync(fd);
  }
}

export interface NewMount {
  readonly type: string | null;
  /** A trusted path. */
  readonly target: string;
  readonly flags: number;
  readonly options?: string;
  readonly source?: string;
}

export function mountAt({ type, target, flags, options, source }: NewMount, step: string): void {
  checked(callMount(source ?? type, target, type, flags, options ?? null), step);
}

/** Makes `path` (a mount of its own) the root of every thread of this process; the old root is gone afterwards. */
export function changeRoot(path: string): void {
  process.chdir(path);
  checked(callPivot(callNumbers.pivotRoot, ".", "."), "pivot");
  checked(callUnmount(".", detach), "pivot");
  process.chdir("/");
}
