// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assembleSeccomp } from "./seccomp-bpf.ts";
import { type Architecture, guestPolicy } from "./seccomp-policy.ts";

const auditArchitecture = { x64: 0xc000_003e, arm64: 0xc000_00b7 };

type Verdict = "allow" | "kill" | number;

interface Call {
  readonly number: number;
  readonly arguments?: readonly number[];
  readonly architecture?: number;
}

/** Runs a classic BPF program over struct seccomp_data, as the kernel does. */
function judge(program: Buffer, architecture: Architecture, call: Call): Verdict {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.architecture ?? auditArchitecture[architecture], 4);
  for (const [index, value] of (call.arguments ?? []).entries()) data.writeUInt32LE(value >>> 0, 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
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
        if (number !== undefined && rule.when === undefined) expected.set(number, rule.refusal === "EPERM" ? 1 : 38);
      }
      const conditional = new Set(guestPolicy.filter((rule) => rule.when).map((rule) => rule[architecture]));
      for (let number = 0; number <= 469; number += 1) {
        if (conditional.has(number)) continue;
        assert.equal(judge(program, architecture, { number }), expected.get(number) ?? "allow", `call ${number}`);
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
      for (const bit of [0x20000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]) {
        assert.equal(verdict("clone", bit | 17), 1);
        assert.equal(verdict("unshare", bit), 1);
      }
      assert.equal(verdict("unshare", 0x80), 1);
      assert.equal(verdict("unshare", 0x400), "allow");
    });

    it("allows only local and internet sockets, and netlink for looking", () => {
      for (const family of [1, 2, 10]) assert.equal(verdict("socket", family, 1, 0), "allow");
      for (const family of [0, 3, 15, 17, 21, 29, 31, 38, 40, 44]) assert.equal(verdict("socket", family, 1, 0), 97);
      assert.equal(verdict("socket", 16, 3, 0), "allow");
      assert.equal(verdict("socket", 16, 3, 4), "allow");
      for (const protocol of [1, 6, 9, 12, 15, 16]) assert.equal(verdict("socket", 16, 3, protocol), 97);
    });

    it("refuses to type into terminals", () => {
      assert.equal(verdict("ioctl", 0, 0x5412), 1);
      assert.equal(verdict("ioctl", 0, 0x541c), 1);
      assert.equal(verdict("ioctl", 0, 0x5401), "allow");
    });
  });
}
