// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync, statSync } from "node:fs";
import type { Socket } from "node:net";
import { SpaceError } from "@space/model";
import { type PeerCredentials, socketCredentials } from "./system-calls.ts";

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

/** The inode of the socket that listens at the path, as the kernel's table of this network namespace has it. */
export function listeningInode(socketPath: string): string | undefined {
  const table = readFileSync("/proc/net/unix", "utf8");
  const end = ` ${socketPath}\n`; // only lines that end so are taken apart: the table has one for each socket of the host
  for (let at = table.indexOf(end); at >= 0; at = table.indexOf(end, at + 1)) {
    // Num RefCount Protocol Flags Type St Inode Path; flag 0x10000 is a listening socket.
    const fields = table
      .slice(table.lastIndexOf("\n", at) + 1, at + end.length - 1)
      .trim()
      .split(/\s+/);
    if (fields[7] === socketPath && fields[3] === "00010000") return fields[6];
  }
  return undefined;
}

/** The inode of the path itself, in the file system. */
export function pathInode(path: string): string {
  return statSync(path, { bigint: true }).ino.toString();
}
