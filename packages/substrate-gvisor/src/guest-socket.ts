// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chownSync, existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type EndpointEvidence, SpaceError } from "@space/model";
import {
  type ControlGroups,
  evidenceMismatch,
  holdsSocket,
  hostBootId,
  peerCredentials,
  processEvidence,
} from "@space/platform-linux";
import { meetingPlace } from "./oci-spec.ts";
import type { SandboxNote, SandboxPlaces } from "./sandbox-places.ts";

const lookEveryMs = 4;
const listenLimitMs = 60_000;
const quietLimitMs = 3_000;
const listeningFlag = "00010000";

/** What each socket of the guest's is called where it was made: in the file server's own view of the folder. */
const inside = `${meetingPlace}/s`;

interface HostSocket {
  readonly inode: string;
  readonly listening: boolean;
  /** Where it is bound; empty for one that never was. */
  readonly path: string;
}

/** The Unix sockets of the network namespace in which the process is. */
function socketsOf(pid: number | "self"): readonly HostSocket[] {
  return readFileSync(`/proc/${pid}/net/unix`, "utf8")
    .split("\n")
    .slice(1)
    .flatMap((line) => {
      const [, , , flags, , , inode, path = ""] = line.trim().split(/\s+/);
      return inode === undefined ? [] : [{ inode, listening: flags === listeningFlag, path }];
    });
}

/**
 * The guest's sockets that listen on the host. One that the guest has closed stays with the file server for a while: nothing
 * leads to it any more, and nobody accepts there.
 */
function listeningSockets({ endpoint }: SandboxNote): readonly HostSocket[] {
  return socketsOf(endpoint.guest.pid).filter(({ path, listening }) => listening && path === inside);
}

/** Whether the guest listens now. */
export function listensNow(note: SandboxNote): boolean {
  return listeningSockets(note).some(({ inode }) => holdsSocket(note.kernel.pid, inode));
}

/** Waits until the guest listens, and lets `socketUid` connect. Throws `substrate/failed` when `hasEnded` says so first. */
export async function awaitSocket(
  places: SandboxPlaces,
  socketUid: number,
  hasEnded: () => boolean,
): Promise<void> {
  for (let waitedMs = 0; waitedMs < listenLimitMs; waitedMs += lookEveryMs) {
    if (existsSync(places.socket) && (await listener(places.socket)) !== undefined) {
      chownSync(places.socket, socketUid, 0);
      return;
    }
    if (hasEnded()) break;
    await pause(lookEveryMs);
  }
  throw new SpaceError("substrate/failed", { step: "listen" }, { cause: new Error(places.lastWords()) });
}

/** Who called `listen`, by the kernel's word; undefined when nobody accepts. */
function listener(path: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("error", () => resolve(undefined));
    socket.once("connect", () => {
      try {
        resolve(peerCredentials(socket).pid);
      } catch {
        resolve(undefined); // it ended meanwhile: asked again
      } finally {
        socket.destroy();
      }
    });
  });
}

/** takes the evidence of a sandbox that has just begun to listen. Throws `endpoint/unverifiable`. */
export async function takeEvidence(
  places: SandboxPlaces,
  group: string,
  groups: ControlGroups,
): Promise<SandboxNote> {
  const server = await listener(places.socket);
  if (server === undefined) throw gone("nobody listens");
  const kernel = processEvidence(Number(readFileSync(places.pidFile, "utf8")));
  const endpoint: EndpointEvidence = {
    hostBootId: hostBootId(),
    guest: processEvidence(server),
    socketPath: places.socket,
    socketInode: socketsOf(server).find(({ listening, path }) => listening && path === inside)?.inode ?? "",
    cgroup: group,
  };
  const note: SandboxNote = { endpoint, kernel, standsStill: false };
  await requireUnchanged(note, groups);
  return note;
}

/**
 * R-19, both hops: the process that listens is the one recorded, and so is the kernel behind it; both are in the sandbox's
 * group and run the same program, and what listens under the guest's name is the former's. A guest that was let go on
 * listens anew, so the inode may be another: whose it is counts. Throws `endpoint/unverifiable`.
 */
export async function requireUnchanged(
  { endpoint, kernel }: SandboxNote,
  groups: ControlGroups,
): Promise<void> {
  if (endpoint.hostBootId !== hostBootId()) throw gone("another boot of the host");
  const members = new Set(await groups.processes(endpoint.cgroup));
  for (const recorded of [endpoint.guest, kernel]) {
    const problem = evidenceMismatch(recorded, processEvidence(recorded.pid));
    if (problem !== undefined) throw gone(problem);
    if (!members.has(recorded.pid)) throw gone("not in the sandbox's group");
  }
  if (endpoint.guest.executable.inode !== kernel.executable.inode) throw gone("another executable");
  for (const { inode } of listeningSockets({ endpoint, kernel, standsStill: false })) {
    if (!holdsSocket(endpoint.guest.pid, inode)) throw gone("the socket is not its own");
  }
}

/**
 * Proof of quiescence: the sandbox holds no socket any more, listening or connected, by which it could be reached. With
 * one, a checkpoint fails, and ends the sandbox. An accepted socket is in the network namespace of who connected, so those
 * of the possible `clients` are looked at too; one that is in none of them counts as one too many. False when there still
 * is one after the limit.
 */
export async function isUnreachable(note: SandboxNote, clients: readonly number[]): Promise<boolean> {
  const places: readonly (number | "self")[] = [note.endpoint.guest.pid, "self", ...clients];
  for (let waitedMs = 0; waitedMs < quietLimitMs; waitedMs += lookEveryMs) {
    // First what it holds: what it lets go of meanwhile is then looked for in vain, and it is looked again.
    const held = heldSockets(note.kernel.pid);
    const known = new Map(places.flatMap(socketsOf).map(({ inode, path }) => [inode, path]));
    const open = held.filter((inode) => (known.get(inode) ?? inside) === inside);
    if (open.length === 0) return true;
    await pause(lookEveryMs);
  }
  return false;
}

function heldSockets(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((fd) => {
    try {
      return /^socket:\[([0-9]+)\]$/.exec(readlinkSync(`${folder}/${fd}`))?.[1] ?? [];
    } catch {
      return []; // closed since the folder was read
    }
  });
}

function gone(problem: string): SpaceError {
  return new SpaceError("endpoint/unverifiable", { problem });
}
