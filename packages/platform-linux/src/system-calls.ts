// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import koffi from "koffi";

/**
 * The few calls that Node has no API for. Each wrapper answers with the call's result or a negative errno, never throws
 * for a failure of the kernel's, and is synchronous: none of them blocks.
 */
const libc = koffi.load("libc.so.6");
const getsockopt = libc.func(
  "int getsockopt(int fd, int level, int name, _Out_ uint8_t *value, _Inout_ uint32_t *length)",
);
const syscall4 = libc.func("long syscall(long number, long a, long b, long c, long d)");
const clockGettime = libc.func("int clock_gettime(int clock, _Out_ int64_t *time)");
const closeFd = libc.func("int close(int fd)");

const clockBoottime = 7;
const solSocket = 1;
const soPeerCred = 17;
const soPeerPidFd = 77;
/** Both numbers are the same on x86-64 and on 64-bit ARM. */
const sysPidfdSendSignal = 424;
const sysPidfdOpen = 434;

export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

/** SO_PEERCRED of a connected Unix socket: for a client, who called `listen`; for a server, who connected. */
export function socketCredentials(fd: number): PeerCredentials | { readonly errno: number } {
  const value = Buffer.alloc(12);
  if (Number(getsockopt(fd, solSocket, soPeerCred, value, [value.length])) !== 0)
    return { errno: koffi.errno() };
  return { pid: value.readInt32LE(0), uid: value.readUInt32LE(4), gid: value.readUInt32LE(8) };
}

/** SO_PEERPIDFD (Linux 6.5): a file descriptor that stays with this very process. The caller closes it. */
export function socketPidFd(fd: number): number {
  const value = Buffer.alloc(4);
  if (Number(getsockopt(fd, solSocket, soPeerPidFd, value, [value.length])) !== 0) return -koffi.errno();
  return value.readInt32LE(0);
}

/** A descriptor for the process, or a negative errno. The caller closes it. */
export function openPidFd(pid: number): number {
  const fd = Number(syscall4(sysPidfdOpen, pid, 0, 0, 0));
  return fd >= 0 ? fd : -koffi.errno();
}

/** Signals the process behind the descriptor: never a stranger with a reused pid. Negative errno on failure. */
export function signalPidFd(pidFd: number, signal: number): number {
  return Number(syscall4(sysPidfdSendSignal, pidFd, signal, 0, 0)) === 0 ? 0 : -koffi.errno();
}

export function closeDescriptor(fd: number): void {
  closeFd(fd);
}

const time = new BigInt64Array(2);
/** The same as numbers: the low half of the seconds lasts 136 years. */
const timeParts = new Uint32Array(time.buffer);

/** CLOCK_BOOTTIME: since the host booted, its sleep included; the same for every process of it. */
export function bootTimeNanoseconds(): bigint {
  clockGettime(clockBoottime, time);
  const [seconds = 0n, nanoseconds = 0n] = time;
  return seconds * 1_000_000_000n + nanoseconds;
}

/** The same in milliseconds. About 0.2 µs: it is asked for every piece that passes. */
export function bootTimeMs(): number {
  clockGettime(clockBoottime, time);
  return (timeParts[0] ?? 0) * 1000 + (timeParts[2] ?? 0) / 1e6;
}
