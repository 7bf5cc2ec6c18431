// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import koffi from "koffi";
import { GuestError } from "../guest-error.ts";
import { callNumbers, checked, libc } from "./libc.ts";

const prctl = libc.func(
  "int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)",
);
const capset = libc.func("int capset(const uint8_t *header, const uint8_t *data)");
const setrlimit = libc.func("int setrlimit(int resource, const uint64_t *limits)");
const setgroups = libc.func("int setgroups(size_t count, const uint32_t *groups)");
const setresgid = libc.func("int setresgid(uint32_t real, uint32_t effective, uint32_t saved)");
const setresuid = libc.func("int setresuid(uint32_t real, uint32_t effective, uint32_t saved)");
const threadIds = libc.func("long syscall(long number, uint32_t real, uint32_t effective, uint32_t saved)");
const threadGroups = libc.func("long syscall(long number, size_t count, const uint32_t *groups)");
koffi.struct("sock_fprog", { len: "uint16_t", filter: "const uint8_t *" });
const seccomp = libc.func(
  "long syscall(long number, uint32_t operation, uint32_t flags, const sock_fprog *program)",
);

/**
 * What root means inside a guest; each has an effect only on what the guest's user namespace owns or maps. Names for
 * setpriv(1), numbers for the kernel.
 */
export const guestRootCapabilities: Readonly<Record<string, number>> = {
  chown: 0,
  dac_override: 1,
  fowner: 3,
  fsetid: 4,
  kill: 5,
  setgid: 6,
  setuid: 7,
  setpcap: 8,
  net_bind_service: 10,
};

const lastCapability = 63;
const sigkill = 9;
const maxFilterInstructions = 4096;
const filterInstructionBytes = 8;

/** The kernel kills this process when the launcher's thread that started it ends. Cleared by each change of user id. */
export function dieWithParent(): void {
  checked(prctl(1, sigkill, 0, 0, 0), "death-signal");
}

export function forbidNewPrivileges(): void {
  checked(prctl(38, 1, 0, 0, 0), "no-new-privileges");
}

/** Neither the guest's root nor anybody else can trace this process or read its memory, where the secret lies. */
export function hideMemory(): void {
  checked(prctl(4, 0, 0, 0, 0), "dumpable");
}

/** Capabilities that no exec can give again, for this thread and what it starts. */
export function dropBoundingSet(kept: readonly number[]): void {
  for (let capability = 0; capability <= lastCapability; capability += 1) {
    if (!kept.includes(capability)) prctl(24, capability, 0, 0, 0); // EINVAL past the last one
  }
}

/** Has exactly these capabilities from now on, for this thread and what it starts. */
export function setCapabilities(kept: readonly number[]): void {
  const mask = kept.reduce((bits, capability) => bits | (1 << capability), 0);
  const header = Buffer.alloc(8);
  header.writeUInt32LE(0x2008_0522, 0); // version 3
  const data = Buffer.alloc(24); // effective, permitted, inheritable; then the same for capabilities above 31
  data.writeUInt32LE(mask, 0);
  data.writeUInt32LE(mask, 4);
  checked(capset(header, data), "capabilities");
}

/** Sets RLIMIT_CORE to none, and RLIMIT_FSIZE unless it is zero. */
export function limitFiles(fileLimitBytes: number): void {
  checked(setrlimit(4, [0n, 0n]), "limits");
  const limit = BigInt(fileLimitBytes);
  if (fileLimitBytes > 0) checked(setrlimit(1, [limit, limit]), "limits");
}

/** A seccomp program that answers ENOSYS to io_uring_setup (425 everywhere) and allows the rest. */
export const withoutIoUring: Buffer = Buffer.concat(
  [
    { code: 0x20, jumps: 0, value: 0 }, // load the call's number
    { code: 0x15, jumps: 0x0100, value: 425 }, // if it is another, skip one
    { code: 0x06, jumps: 0, value: 0x0005_0000 | 38 },
    { code: 0x06, jumps: 0, value: 0x7fff_0000 },
  ].map(({ code, jumps, value }) => {
    const instruction = Buffer.alloc(filterInstructionBytes);
    instruction.writeUInt16LE(code, 0);
    instruction.writeUInt16LE(jumps, 2);
    instruction.writeUInt32LE(value, 4);
    return instruction;
  }),
);

/** Puts the filter on every thread of this process and on all it starts. Needs no_new_privs or the host's root. */
export function applyFilter(filter: Buffer): void {
  const length = filter.length / filterInstructionBytes;
  if (!Number.isInteger(length) || length === 0 || length > maxFilterInstructions)
    throw new GuestError(22, "seccomp");
  const everyThread = 1; // SECCOMP_FILTER_FLAG_TSYNC; a positive result names a thread that could not follow
  if (checked(seccomp(callNumbers.seccomp, 1, everyThread, { len: length, filter }), "seccomp") !== 0)
    throw new GuestError(16, "seccomp");
}

/** Becomes this user, in every thread and for good, without supplementary groups. */
export function becomeUser(uid: number, gid: number): void {
  checked(setgroups(0, null), "identity");
  checked(setresgid(gid, gid, gid), "identity");
  checked(setresuid(uid, uid, uid), "identity");
}

export interface UserIdentity {
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
}

/**
 * Does synchronous work (starting a process, above all) as another user. Only this thread changes: raw calls, because the
 * C library would change all. Its saved user id stays 0, which is the way back; an exec makes that id the user's too.
 */
export function asUser<T>({ uid, gid, groups }: UserIdentity, work: () => T): T {
  const { setresuid: uidCall, setresgid: gidCall, setgroups: groupsCall } = callNumbers;
  try {
    checked(threadGroups(groupsCall, groups.length, groups.length === 0 ? null : groups), "setgroups");
    checked(threadIds(gidCall, gid, gid, gid), "setgid");
    checked(threadIds(uidCall, uid, uid, 0), "setuid");
    return work();
  } finally {
    checked(threadIds(uidCall, 0, 0, 0), "setuid");
    checked(threadIds(gidCall, 0, 0, 0), "setgid");
    checked(threadGroups(groupsCall, 0, null), "setgroups");
    dieWithParent();
  }
}
