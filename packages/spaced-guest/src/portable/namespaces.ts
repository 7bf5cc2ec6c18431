// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync, writeFileSync } from "node:fs";
import { GuestError } from "../guest-error.ts";
import { checked, during, libc } from "./libc.ts";
import { findProgram, toolPath } from "./program.ts";

const unshare = libc.func("int unshare(int flags)");
const setns = libc.func("int setns(int fd, int type)");

const newPids = 0x2000_0000;
const range = 65_536;
const holderLimitMs = 10_000;

/**
 * Starts a process (synchronously) that is pid 1 of a pid namespace of its own and still this process's child: it ends
 * with it, and its exit is told here. Only this thread's next children are concerned, and only for the while.
 */
export function asFirstProcess<T>(start: () => T): T {
  checked(unshare(newPids), "fork");
  try {
    return start();
  } finally {
    checked(setns(ownPids, newPids), "fork");
  }
}

const ownPids = openSync("/proc/self/ns/pid", "r");

/**
 * A user namespace in which 0 to 65535 are `uidBase` and up, as a descriptor that the caller closes. `uidBase` also owns
 * it: what its processes hold of what the kernel counts by user is theirs alone, and not the host root's.
 */
export async function openUserNamespace(uidBase: number): Promise<number> {
  const asOwner = ["--reuid", `${uidBase}`, "--regid", `${uidBase}`, "--clear-groups"];
  // Some hosts let nobody make one without this.
  const mayMakeIt = ["--inh-caps", "+sys_admin", "--ambient-caps", "+sys_admin"];
  const make = ["--", findProgram("unshare", toolPath), "--user", "--", "cat"];
  const holder = spawn(findProgram("setpriv", toolPath), [...asOwner, ...mayMakeIt, ...make], {
    cwd: "/",
    env: { PATH: toolPath },
    stdio: ["pipe", "pipe", "ignore"],
    timeout: holderLimitMs,
    killSignal: "SIGKILL",
  });
  const end = once(holder, "exit");
  try {
    holder.stdin.write("\n");
    // Its echo means that it is in the new namespace; its end, that there is none.
    await Promise.race([once(holder.stdout, "data"), ended(end)]);
    const { pid } = holder;
    return during("user-namespace", () => {
      for (const map of ["uid_map", "gid_map"])
        writeFileSync(`/proc/${pid}/${map}`, `0 ${uidBase} ${range}\n`);
      return openSync(`/proc/${pid}/ns/user`, "r");
    });
  } finally {
    holder.kill("SIGKILL");
    await end; // it is of the guest's range, and would be taken for what is left of the guest
  }
}

async function ended(end: Promise<unknown>): Promise<never> {
  await end;
  throw new GuestError(1, "user-namespace");
}

/** Field 22 of /proc/PID/stat; zero when the process is gone. The name in field 2 may hold anything. */
export function startTimeOf(pid: number): bigint {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return BigInt(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? 0);
  } catch {
    return 0n;
  }
}
