// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import type { Socket } from "node:net";
import { SpaceError } from "@space/model";
import { closeDescriptor, type PeerCredentials, socketCredentials, socketPidFd } from "./system-calls.ts";

const errnoUnknownOption = 92;

/** The descriptor of a connected socket. Node keeps it in an undocumented place: read here and nowhere else. */
function descriptorOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, "_handle");
  const fd: unknown = typeof handle === "object" && handle !== null ? Reflect.get(handle, "fd") : undefined;
  if (typeof fd === "number" && fd >= 0) return fd;
  throw new SpaceError("endpoint/unverifiable", { problem: "the socket has no descriptor" });
}

/**
 * who is at the other end, from the kernel. For a client it is who called `listen`: an impostor that bound the path
 * again shows its own pid. Throws `endpoint/unverifiable`; never guesses.
 */
export function peerCredentials(socket: Socket): PeerCredentials {
  const answer = socketCredentials(descriptorOf(socket));
  if ("errno" in answer)
    throw new SpaceError("endpoint/unverifiable", { problem: `SO_PEERCRED: errno ${answer.errno}` });
  if (answer.pid <= 0)
    throw new SpaceError("endpoint/unverifiable", { problem: "the peer is in another pid namespace" });
  return answer;
}

/**
 * the process at the other end by a descriptor that stays with it, because a pid alone is reported after its process
 * has died. `ended`: it is no more. `unsupported`: this kernel (before 6.5) cannot say. Throws `endpoint/unverifiable`.
 */
export function peerProcess(socket: Socket): number | "ended" | "unsupported" {
  const pidFd = socketPidFd(descriptorOf(socket));
  if (pidFd === -errnoUnknownOption) return "unsupported";
  if (pidFd < 0) return noPidFd(-pidFd);
  try {
    const pid = Number(/^Pid:\s*(-?[0-9]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${pidFd}`, "utf8"))?.[1]);
    if (pid > 0) return pid;
    if (pid === -1) return "ended";
    throw new SpaceError("endpoint/unverifiable", { problem: "the peer is in another pid namespace" });
  } finally {
    closeDescriptor(pidFd);
  }
}

/** Before Linux 6.16 the kernel gives no descriptor of a process that has been reaped: ESRCH, or EINVAL. */
function noPidFd(errno: number): "ended" {
  if (errno === 3 || errno === 22) return "ended";
  throw new SpaceError("endpoint/unverifiable", { problem: `SO_PEERPIDFD: errno ${errno}` });
}

/** whether the process holds a descriptor of this socket. Throws what reading /proc throws. */
export function holdsSocket(pid: number, inode: string): boolean {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).some((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`) === `socket:[${inode}]`;
    } catch {
      return false; // closed since the folder was read
    }
  });
}

/** The inode of the socket that listens at the path, as the kernel's table of this network namespace has it. */
export function listeningInode(socketPath: string): string | undefined {
  return listeningInodes(socketPath, "self")[0];
}

/** The inodes of all sockets that listen at the path, also of those whose path another has bound again since. */
export function listeningInodes(socketPath: string, pid: number | "self"): readonly string[] {
  const table = readFileSync(`/proc/${pid}/net/unix`, "utf8");
  const end = ` ${socketPath}\n`; // only lines that end so are taken apart: the table has one for each socket of the host
  const inodes: string[] = [];
  for (let at = table.indexOf(end); at >= 0; at = table.indexOf(end, at + 1)) {
    // Num RefCount Protocol Flags Type St Inode Path; flag 0x10000 is a listening socket.
    const fields = table
      .slice(table.lastIndexOf("\n", at) + 1, at + end.length - 1)
      .trim()
      .split(/\s+/);
    const [inode] = fields.slice(6, 7);
    if (fields[7] === socketPath && fields[3] === "00010000" && inode !== undefined) inodes.push(inode);
  }
  return inodes;
}

/** The inode of the path itself, in the file system. */
export function pathInode(path: string): string {
  return statSync(path, { bigint: true }).ino.toString();
}
