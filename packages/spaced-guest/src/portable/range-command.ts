// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { closeSync, constants, openSync } from "node:fs";
import { keepOverExec } from "./descriptors.ts";
import { checked, libc } from "./libc.ts";
import { openUserNamespace } from "./namespaces.ts";
import { forbidNewPrivileges } from "./privileges.ts";
import { becomeProgram, findProgram, toolPath } from "./program.ts";

const createRuleset = libc.func(
  "long syscall(long number, const uint64_t *attr, size_t size, uint32_t flags)",
);
const addRule = libc.func(
  "long syscall(long number, int ruleset, int type, const uint8_t *rule, uint32_t flags)",
);
const restrictSelf = libc.func("long syscall(long number, int ruleset, uint32_t flags)");

const writeFile = 0x2;
// WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, _DIR, _REG, _SOCK, _FIFO, _BLOCK, _SYM, REFER (hard links)
const writes = 0x3ff2;
const pathOnly = 0x20_0000;

/**
 * Becomes a command under a guest's user ids, for archiving the guest's layer: it reads and writes only what the range
 * owns, and what everyone may. Throws `GuestError`.
 */
export async function runInUserNamespace(uidBase: number, command: readonly string[]): Promise<never> {
  const userNamespace = await openUserNamespace(uidBase);
  keepOverExec(userNamespace);
  for (const fd of [0, 1, 2]) keepOverExec(fd);
  const nsenter = findProgram("nsenter", toolPath);
  const [program = "", ...args] = command;
  const path = process.env["PATH"] ?? toolPath; // the command's own environment, as the caller gave it
  const found = program.includes("/") ? program : findProgram(program, path);
  forbidNewPrivileges();
  confineWrites();
  const enter = [`--user=/proc/self/fd/${userNamespace}`, "--setuid", "0", "--setgid", "0", "--"];
  const env = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
  const dieWithParent = [findProgram("setpriv", toolPath), "--pdeathsig", "KILL", "--"];
  return becomeProgram([nsenter, ...enter, ...dieWithParent, found, ...args], env);
}

/**
 * An archive is a guest's work: whatever a crafted one makes the archiver do, it writes only under the working directory.
 * Best effort (Landlock, Linux 5.19): the user ids confine it too.
 */
function confineWrites(): void {
  const ruleset = Number(createRuleset(444, [BigInt(writes)], 8, 0));
  if (ruleset < 0) return;
  for (const [path, allowed] of [
    [".", writes],
    ["/dev/null", writeFile],
  ] as const) {
    const fd = openSync(path, pathOnly | constants.O_RDONLY);
    const rule = Buffer.alloc(12);
    rule.writeBigUInt64LE(BigInt(allowed), 0);
    rule.writeInt32LE(fd, 8);
    checked(addRule(445, ruleset, 1, rule, 0), "landlock");
    closeSync(fd);
  }
  checked(restrictSelf(446, ruleset, 0), "landlock");
  closeSync(ruleset);
}
