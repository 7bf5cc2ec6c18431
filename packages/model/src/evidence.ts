// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "./errors.ts";
import { members } from "./identity.ts";
import type { EndpointEvidence, ProcessEvidence } from "./ports/substrate.ts";

/** One text per evidence, members always in this order: equal evidence has equal text. */
export function evidenceToText(evidence: EndpointEvidence): string {
  const { hostBootId, guest, socketPath, socketInode, cgroup } = evidence;
  const { pid, startTime, executable, uid } = guest;
  const { device, inode } = executable;
  return JSON.stringify({
    hostBootId,
    guest: { pid, startTime, executable: { device, inode }, uid },
    socketPath,
    socketInode,
    cgroup,
  });
}

/** Reads {@link evidenceToText}'s text strictly. Throws `input/invalid`. */
export function parseEvidence(text: string): EndpointEvidence {
  const whole = members(parseJson(text), "evidence", [
    "hostBootId",
    "guest",
    "socketPath",
    "socketInode",
    "cgroup",
  ]);
  return {
    hostBootId: parseText(whole["hostBootId"]),
    guest: parseProcess(whole["guest"]),
    socketPath: parseText(whole["socketPath"]),
    socketInode: parseText(whole["socketInode"]),
    cgroup: parseText(whole["cgroup"]),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SpaceError("input/invalid", { field: "evidence", problem: "is not JSON" }, { cause });
  }
}

function parseProcess(value: unknown): ProcessEvidence {
  const { pid, startTime, executable, uid } = members(value, "guest", [
    "pid",
    "startTime",
    "executable",
    "uid",
  ]);
  const { device, inode } = members(executable, "executable", ["device", "inode"]);
  return {
    pid: parseNumber(pid),
    startTime: parseText(startTime),
    executable: { device: parseText(device), inode: parseText(inode) },
    uid: parseNumber(uid),
  };
}

function parseText(value: unknown): string {
  if (typeof value === "string") return value;
  throw new SpaceError("input/invalid", { field: "evidence", problem: "must hold texts" });
}

function parseNumber(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new SpaceError("input/invalid", { field: "evidence", problem: "must hold whole numbers" });
}
