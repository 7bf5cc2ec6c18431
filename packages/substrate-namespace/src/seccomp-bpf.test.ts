// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assembleSeccomp, seccompProgram } from "./seccomp-bpf.ts";
import { type Architecture, guestPolicy } from "./seccomp-policy.ts";

const auditArchitecture = { x64: 0xc000_003e, arm64: 0xc000_00b7 };
const errno = { EPERM: 1, ENOSYS: 38, EOPNOTSUPP: 95, EAFNOSUPPORT: 97 };

/** Named here a second time on purpose: a line lost from the policy must not go unnoticed. */
const refused = {
  EPERM: `setns mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
    open_tree_attr open_by_handle_at bpf perf_event_open userfaultfd add_key request_key keyctl kexec_load kexec_file_load
    init_module finit_module delete_module swapon swapoff reboot acct quotactl quotactl_fd settimeofday clock_settime`,
  ENOSYS: "clone3 io_uring_setup io_uring_enter io_uring_register memfd_secret",
  EOPNOTSUPP: "name_to_handle_at",
} as const;

/** Numbers of the calls that git, python3, node with workers, gcc, bash, find and tar were seen to make (strace -f). */
const everyday = {
  x64: `0-1 3 5 7-15 17-18 21 28 33 39-40 42 44-52 54-55 58-63 72-73 75 79-83 86-90 93 95 98-99 101-102 104
    107-108 110-112 116-117 119 125 137-138 157-158 186 191-192 202 204 217-218 221 231 233-234 247
    254-255 257 259-260 262-263 268 273 275 280-281 283 285 289-291 293-294 302 316-319 326 330 332 334
    434 436 439`,
  arm64: `8-9 17 19-22 25-28 32-33 35 43-44 47 49-50 53-57 59 61-64 67-68 71 74 76 79-80 83 85 88 90 93-96
    98-99 117 123 129 131 134-135 139 147 149 157 159-160 165-167 172-179 200-201 203-212 214-215
    221-223 226 233 260-261 276-279 285 289 291 293 434 436 439`,
};

type Verdict = "allow" | "kill" | number;

interface Call {
  readonly number: number;
  readonly arguments?: readonly number[];
  readonly architecture?: number;
}

function judge(program: Buffer, architecture: Architecture, call: Call): Verdict {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.architecture ?? auditArchitecture[architecture], 4);
  for (const [index, value] of (call.arguments ?? []).entries())
    data.writeUInt32LE(value >>> 0, 16 + 8 * index);
  return run(program, data);
}

function stepsOf(program: Buffer, architecture: Architecture, number: number): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(auditArchitecture[architecture], 4);
  let steps = 0;
  run(program, data, () => {
    steps += 1;
  });
  return steps;
}

/** Runs a classic BPF program over struct seccomp_data, as the kernel does. */
function run(program: Buffer, data: Buffer, onStep = (): void => undefined): Verdict {
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    onStep();
    const code = program.readUInt16LE(at * 8);
    const value = program.readUInt32LE(at * 8 + 4);
    const take = (test: boolean): number => program.readUInt8(at * 8 + (test ? 2 : 3));
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else if (code === 0x15) at += take(accumulator === value);
    else if (code === 0x25) at += take(accumulator > value);
    else if (code === 0x45) at += take((accumulator & value) !== 0);
    else if (code === 0x06) {
      if (value === 0x7fff_0000) return "allow";
      return value === 0x8000_0000 ? "kill" : value & 0xffff;
    } else assert.fail(`unknown instruction ${code}`);
  }
  return assert.fail("the program ran off its end");
}

for (const architecture of ["x64", "arm64"] as const) {
  const program = assembleSeccomp(guestPolicy, architecture);
  const numberOf = (name: string): number => {
    const number = guestPolicy.find((rule) => rule.name === name)?.[architecture];
    assert.ok(number !== undefined, name);
    return number;
  };
  const verdict = (name: string, ...args: number[]): Verdict =>
    judge(program, architecture, { number: numberOf(name), arguments: args });

  describe(`seccomp policy on ${architecture}`, () => {
    it("fits in a kernel filter", () => {
      assert.ok(program.length / 8 <= 4096);
    });

    it("refuses every unconditional rule with its errno and nothing else in between", () => {
      const expected = new Map<number, number>();
      for (const rule of guestPolicy) {
        const number = rule[architecture];
        if (number !== undefined && rule.when === undefined) expected.set(number, errno[rule.refusal]);
      }
      const conditional = new Set(guestPolicy.filter((rule) => rule.when).map((rule) => rule[architecture]));
      for (let number = 0; number <= 469; number += 1) {
        if (conditional.has(number)) continue;
        assert.equal(
          judge(program, architecture, { number }),
          expected.get(number) ?? "allow",
          `call ${number}`,
        );
      }
    });

    it("reaches each call that is allowed in few steps, because the kernel tries all of them for each guest", () => {
      const known = new Set(guestPolicy.map((rule) => rule[architecture]));
      for (let number = 0; number <= 469; number += 1) {
        if (!known.has(number)) assert.ok(stepsOf(program, architecture, number) <= 14, `call ${number}`);
      }
    });

    for (const [refusal, names] of Object.entries(refused)) {
      it(`refuses the wall's calls with ${refusal}`, () => {
        const expected = errno[refusal as keyof typeof errno]; // its keys, lost by Object.entries
        for (const name of names.split(/\s+/)) assert.equal(verdict(name), expected, name);
      });
    }

    it("allows what ordinary programs use", () => {
      for (const range of everyday[architecture].split(/\s+/)) {
        const [first = 0, last = first] = range.split("-").map(Number);
        for (let number = first; number <= last; number += 1) {
          assert.equal(judge(program, architecture, { number }), "allow", `call ${number}`);
        }
      }
    });

    it("answers ENOSYS to unknown and x32 calls", () => {
      for (const number of [470, 1000, 0x4000_0000, 0x4000_0000 + 165, 0xffff_ffff]) {
        assert.equal(judge(program, architecture, { number }), 38);
      }
    });

    it("kills a process that uses another architecture's calls", () => {
      assert.equal(judge(program, architecture, { number: 1, architecture: 0x4000_0003 }), "kill");
    });

    it("allows threads and forks but no new namespaces", () => {
      assert.equal(verdict("clone", 0x003d_0f00), "allow");
      assert.equal(verdict("clone", 17), "allow");
      for (const bit of [
        0x20000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000,
      ]) {
        assert.equal(verdict("clone", bit | 17), 1);
        assert.equal(verdict("unshare", bit), 1);
      }
      assert.equal(verdict("unshare", 0x80), 1);
      assert.equal(verdict("unshare", 0x400), "allow");
    });

    it("allows only local and internet sockets, and netlink for looking", () => {
      for (const family of [1, 2, 10]) assert.equal(verdict("socket", family, 1, 0), "allow");
      for (const family of [0, 3, 15, 17, 21, 29, 31, 38, 40, 44])
        assert.equal(verdict("socket", family, 1, 0), 97);
      assert.equal(verdict("socket", 16, 3, 0), "allow");
      assert.equal(verdict("socket", 16, 3, 4), "allow");
      for (const protocol of [1, 6, 9, 12, 15, 16]) assert.equal(verdict("socket", 16, 3, protocol), 97);
      assert.equal(verdict("socketpair", 1, 1, 0), "allow");
      assert.equal(verdict("socketpair", 30, 1, 0), 97);
    });

    it("compares what the kernel compares: the low half of an int argument", () => {
      const data = Buffer.alloc(64);
      data.writeUInt32LE(numberOf("ioctl"), 0);
      data.writeUInt32LE(auditArchitecture[architecture], 4);
      data.writeBigUInt64LE(0xdead_0000_0000_5412n, 24);
      assert.equal(run(program, data), 1);
    });

    it("refuses to type into terminals", () => {
      for (const request of [0x5412, 0x541c, 0x5423]) assert.equal(verdict("ioctl", 0, request), 1);
      assert.equal(verdict("ioctl", 0, 0x5401), "allow");
    });
  });
}

it("makes the program of the machine it runs on", () => {
  const { arch } = process;
  if (arch === "x64" || arch === "arm64")
    assert.deepEqual(seccompProgram(), assembleSeccomp(guestPolicy, arch));
});
