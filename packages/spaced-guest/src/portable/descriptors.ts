// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readSync, writeSync } from "node:fs";
import type { Socket } from "node:net";
import { promisify } from "node:util";
import { GuestError } from "../guest-error.ts";
import { checked, libc } from "./libc.ts";

const pipe2 = libc.func("int pipe2(_Out_ int *ends, int flags)");
const fcntl = libc.func("int fcntl(int fd, int command, long argument)");
const closeRange = libc.func("long syscall(long number, uint32_t first, uint32_t last, uint32_t flags)");
const dup2 = libc.func("int dup2(int from, int to)");
const ioctl = libc.func("int ioctl(int fd, unsigned long request, _Inout_ uint8_t *argument)");
const flock = libc.func("int flock(int fd, int operation)");
const socketCall = libc.func("int socket(int family, int type, int protocol)");
const bindCall = libc.func("int bind(int fd, const uint8_t *address, uint32_t length)");
const getsockopt = libc.func(
  "int getsockopt(int fd, int level, int name, _Out_ uint8_t *value, _Inout_ uint32_t *length)",
);
const sethostname = libc.func("int sethostname(const char *name, size_t length)");
const syncfs = libc.func("int syncfs(int fd)");
const callSyncfs = promisify<number, number>((fd, done) =>
  syncfs.async(fd, (error: Error | null, result: number) => done(error, result)),
);

const closeOnExec = 0x8_0000;
const maxSocketPathBytes = 107;

/** A pipe, closed on exec at both ends. */
export function openPipe(): { readonly reader: number; readonly writer: number } {
  const ends = [0, 0];
  checked(pipe2(ends, closeOnExec), "stdio");
  return { reader: ends[0] ?? 0, writer: ends[1] ?? 0 };
}

/** Nothing but standard input, output and error is passed on by an exec, whatever this process was started with. */
export function closeAllOnExec(): void {
  checked(closeRange(436, 3, 0xffff_ffff, 4), "descriptors");
}

/** Lets an exec pass the descriptor on. */
export function keepOverExec(fd: number): void {
  checked(fcntl(fd, 2, 0), "descriptors");
}

export function replaceDescriptor(from: number, to: number): void {
  checked(dup2(from, to), "descriptors");
}

/** Bytes that wait in a pipe. */
export function waitingBytes(fd: number): number {
  const value = Buffer.alloc(8);
  return Number(ioctl(fd, 0x541b, value)) < 0 ? 0 : value.readInt32LE(0);
}

/** Takes an exclusive lock or throws `GuestError` EAGAIN. It lasts as long as the descriptor. */
export function lockFile(fd: number): void {
  checked(flock(fd, 2 | 4), "lock");
}

/** Of this UTS namespace. Throws `GuestError` when it is too long. */
export function setHostName(name: string): void {
  checked(sethostname(name, Buffer.byteLength(name)), "hostname");
}

/** Brings the loopback of this network namespace up. */
export function raiseLoopback(): void {
  const request = Buffer.alloc(40); // struct ifreq
  request.write("lo");
  request.writeInt16LE(1, 16); // IFF_UP
  const fd = checked(socketCall(2, 2 | closeOnExec, 0), "loopback");
  checked(ioctl(fd, 0x8914, request), "loopback"); // SIOCSIFFLAGS
}

/** A Unix socket bound to the path, not yet listening: who calls listen is whom clients see. Mode by the umask. */
export function bindUnixSocket(path: string): number {
  const address = Buffer.alloc(2 + Buffer.byteLength(path) + 1);
  if (address.length - 3 > maxSocketPathBytes) throw new GuestError(36, "socket");
  address.writeUInt16LE(1, 0);
  address.write(path, 2);
  const fd = checked(socketCall(1, 1 | closeOnExec, 0), "socket");
  checked(bindCall(fd, address, address.length), "socket");
  return fd;
}

/** The user at the other end of a connected Unix socket, from the kernel; undefined when it cannot be told. */
export function peerUser(socket: Socket): number | undefined {
  const handle: unknown = Reflect.get(socket, "_handle");
  const fd: unknown = typeof handle === "object" && handle !== null ? Reflect.get(handle, "fd") : undefined;
  if (typeof fd !== "number" || fd < 0) return undefined;
  const value = Buffer.alloc(12);
  return Number(getsockopt(fd, 1, 17, value, [value.length])) < 0 ? undefined : value.readUInt32LE(4);
}

/** Flushes the file system that the descriptor is on. */
export async function syncFileSystem(fd: number): Promise<void> {
  checked(await callSyncfs(fd), "sync");
}

/** Reads exactly this much from a blocking descriptor; throws EPIPE at its end. */
export function readExactly(fd: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const count = readSync(fd, bytes, at, length - at, null);
    if (count === 0) throw new GuestError(32, "control");
    at += count;
  }
  return bytes;
}

export function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
