// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync, statSync } from "node:fs";
import { type ProcessEvidence, SpaceError } from "@space/model";
import { closeDescriptor, openPidFd, signalPidFd } from "./system-calls.ts";

let bootId: string | undefined;

/** Names this boot of the host: evidence of another boot proves nothing. Read once: no process lives through a boot. */
export function hostBootId(): string {
  bootId ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return bootId;
}

/** Field 22 of /proc/PID/stat, or undefined when there is no such process. The name in field 2 may hold anything. */
export function processStartTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined; // no such process: that is the answer
  }
}

/**
 * what tells this very process from any other. The start time is read before and after, so that the facts are of
 * one process. Throws `endpoint/unverifiable` when the process is gone or cannot be read.
 */
export function processEvidence(pid: number): ProcessEvidence {
  const startTime = processStartTime(pid);
  try {
    const program = statSync(`/proc/${pid}/exe`, { bigint: true });
    const uid = statSync(`/proc/${pid}`).uid;
    if (startTime !== undefined && processStartTime(pid) === startTime) {
      return {
        pid,
        startTime,
        executable: { device: program.dev.toString(), inode: program.ino.toString() },
        uid,
      };
    }
  } catch (cause) {
    throw new SpaceError("endpoint/unverifiable", { problem: "the process cannot be read" }, { cause });
  }
  throw new SpaceError("endpoint/unverifiable", { problem: "the process is gone" });
}

/** Which recorded fact no longer holds; undefined when the recorded process is the one that runs now. */
export function evidenceMismatch(recorded: ProcessEvidence, found: ProcessEvidence): string | undefined {
  if (recorded.pid !== found.pid) return "another pid";
  if (recorded.startTime !== found.startTime) return "the pid was used again";
  if (recorded.executable.device !== found.executable.device) return "another executable";
  if (recorded.executable.inode !== found.executable.inode) return "another executable";
  return recorded.uid === found.uid ? undefined : "another user id";
}

/** Whether the recorded process still runs. */
export function stillRuns(recorded: ProcessEvidence): boolean {
  return processStartTime(recorded.pid) === recorded.startTime;
}

/**
 * Incident 23: signals the recorded process or nobody. The descriptor is opened first and the start time compared after,
 * so that the signal goes to the process that was compared. Returns whether it was sent.
 */
export function signalProcess(
  recorded: { readonly pid: number; readonly startTime: string },
  signal: number,
): boolean {
  const pidFd = openPidFd(recorded.pid);
  if (pidFd < 0) return false;
  try {
    return processStartTime(recorded.pid) === recorded.startTime && signalPidFd(pidFd, signal) === 0;
  } finally {
    closeDescriptor(pidFd);
  }
}
