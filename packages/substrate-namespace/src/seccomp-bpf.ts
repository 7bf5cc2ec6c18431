// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import {
  type Architecture,
  type Condition,
  guestPolicy,
  highestKnownSyscall,
  type Refusal,
  type SyscallRule,
} from "./seccomp-policy.ts";

/** One classic BPF instruction, as in <linux/filter.h>. */
interface Instruction {
  readonly code: number;
  readonly jumpTrue: number;
  readonly jumpFalse: number;
  readonly value: number;
}

const auditArchitecture: Readonly<Record<Architecture, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };
const errnoOf: Readonly<Record<Refusal, number>> = { EPERM: 1, ENOSYS: 38, EOPNOTSUPP: 95, EAFNOSUPPORT: 97 };

const allow = 0x7fff_0000;
const killProcess = 0x8000_0000;
const numberOffset = 0; // of struct seccomp_data
const architectureOffset = 4;
const argumentOffset = (index: number): number => 16 + 8 * index; // its low half: both machines are little-endian

const load = (offset: number): Instruction => ({ code: 0x20, jumpTrue: 0, jumpFalse: 0, value: offset });
const answer = (value: number): Instruction => ({ code: 0x06, jumpTrue: 0, jumpFalse: 0, value });
const refuse = (refusal: Refusal): Instruction => answer(0x0005_0000 | errnoOf[refusal]);

function jump(code: number, value: number, jumpTrue: number, jumpFalse: number): Instruction {
  if (jumpTrue > 255 || jumpFalse > 255) throw new RangeError("seccomp jump too far");
  return { code, jumpTrue, jumpFalse, value };
}

const ifEqual = (value: number, yes: number, no: number): Instruction => jump(0x15, value, yes, no);
const ifAnyBit = (mask: number, yes: number, no: number): Instruction => jump(0x45, mask, yes, no);
const ifGreater = (value: number, yes: number, no: number): Instruction => jump(0x25, value, yes, no);

/** Code that ends in a refusal or falls through to the instruction after it. */
function assembleCondition(when: Condition, refusal: Refusal): Instruction[] {
  switch (when.kind) {
    case "any-bit":
      return [load(argumentOffset(when.argument)), ifAnyBit(when.mask, 0, 1), refuse(refusal)];
    case "one-of":
      return [
        load(argumentOffset(when.argument)),
        ...when.values.flatMap((value) => [ifEqual(value, 0, 1), refuse(refusal)]),
      ];
    case "unless": {
      const lines = when.allowed.map((line) =>
        line.flatMap((test, at) => {
          const left = line.length - at - 1; // tests of this line still to come, two instructions each
          return [load(argumentOffset(test.argument)), ifEqual(test.value, 0, 2 * left + 1)];
        }),
      );
      return [...lines.flatMap((tests) => [...tests, answer(allow)]), refuse(refusal)];
    }
  }
}

function assembleRule(rule: SyscallRule, number: number): Instruction[] {
  if (rule.when === undefined) return [ifEqual(number, 0, 1), refuse(rule.refusal)];
  // A condition leaves an argument in the accumulator, so its block ends here: the call is this one and allowed.
  const body = [...assembleCondition(rule.when, rule.refusal), answer(allow)];
  return [ifEqual(number, 0, body.length), ...body];
}

interface NumberedBlock {
  readonly number: number;
  readonly code: readonly Instruction[];
}

/** Calls told apart one by one; beyond that they are halved first. */
const toldApart = 3;

/**
 * The blocks in the order of their numbers, halved like a sorted list is searched, and allowed after the last. For each new
 * filter the kernel tries every call, to know which it need not ask about: one after the other that is most of its price.
 */
function assembleSearch(blocks: readonly NumberedBlock[]): Instruction[] {
  const middle = Math.ceil(blocks.length / 2);
  const lastOfLower = blocks[middle - 1];
  if (blocks.length <= toldApart || lastOfLower === undefined) {
    return [...blocks.flatMap(({ code }) => code), answer(allow)];
  }
  const lower = assembleSearch(blocks.slice(0, middle));
  return [ifGreater(lastOfLower.number, lower.length, 0), ...lower, ...assembleSearch(blocks.slice(middle))];
}

function blocksOf(policy: readonly SyscallRule[], architecture: Architecture): readonly NumberedBlock[] {
  const blocks = policy.flatMap((rule) => {
    const number = rule[architecture];
    return number === undefined ? [] : [{ number, code: assembleRule(rule, number) }];
  });
  const sorted = blocks.toSorted((a, b) => a.number - b.number);
  if (new Set(sorted.map(({ number }) => number)).size < sorted.length)
    throw new RangeError("two seccomp rules for one call");
  return sorted;
}

/**
 * Assembles a policy for seccomp(2): an array of `struct sock_filter`, as the launcher takes it. A call of another
 * architecture (32-bit code) ends the process; calls without a rule are allowed.
 */
export function assembleSeccomp(policy: readonly SyscallRule[], architecture: Architecture): Buffer {
  const program = [
    load(architectureOffset),
    ifEqual(auditArchitecture[architecture], 1, 0),
    answer(killProcess),
    load(numberOffset),
    ifGreater(highestKnownSyscall, 0, 1),
    refuse("ENOSYS"),
    ...assembleSearch(blocksOf(policy, architecture)),
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, instruction] of program.entries()) {
    bytes.writeUInt16LE(instruction.code, index * 8);
    bytes.writeUInt8(instruction.jumpTrue, index * 8 + 2);
    bytes.writeUInt8(instruction.jumpFalse, index * 8 + 3);
    bytes.writeUInt32LE(instruction.value, index * 8 + 4);
  }
  return bytes;
}

/** The guests' filter for this host, as `spaced-launch --seccomp FILE` reads it. Throws `host/unfit` on other machines. */
export function seccompProgram(): Buffer {
  const { arch } = process;
  if (arch === "x64" || arch === "arm64") return assembleSeccomp(guestPolicy, arch);
  throw new SpaceError("host/unfit", {
    problem: `guests cannot be confined on ${arch}`,
    remedy: "use a 64-bit x86 or ARM host",
  });
}
