// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "./errors.ts";
import {
  newActivationId,
  newAdmissionId,
  newCapabilityId,
  newSandboxId,
  newTenantId,
  newWorkerId,
  parseActivationId,
  parseAdmissionId,
  parseCapabilityId,
  parseDigest,
  parseSandboxId,
  parseTenantId,
  parseWorkerId,
} from "./ids.ts";
import type { Random } from "./ports/random.ts";

/** Every byte in turn. */
function counting(): Random {
  let next = 0;
  return { bytes: (length) => Uint8Array.from({ length }, () => next++ % 256) };
}

const refused = (error: unknown): boolean => isSpaceError(error, "input/invalid");

for (const [make, parse, example] of [
  [newSandboxId, parseSandboxId, "iabcdefghijklmnopqrst"],
  [newWorkerId, parseWorkerId, "wrk_abcdefghijklmnop"],
  [newActivationId, parseActivationId, "act_abcdefghijklmnopqrstuvwxyz"],
  [newCapabilityId, parseCapabilityId, "cap_abcdefghijklmnopqrstuvwxyz"],
  [newTenantId, parseTenantId, "ten_abcdefghijklmnop"],
  [newAdmissionId, parseAdmissionId, "adm_abcdefghijklmnopqrstuvwxyz"],
] as const) {
  it(`${make.name} makes what ${parse.name} reads, and nothing near it is read`, () => {
    assert.equal(make(counting()), example);
    const random = counting();
    for (let n = 0; n < 50; n += 1) assert.equal(parse(parse(make(random))).length, example.length);
    for (const text of [
      "",
      example.slice(0, -1),
      `${example}a`,
      `${example}\n`,
      ` ${example}`,
      example.toUpperCase(),
      `${example.slice(0, -1)}_`,
      example.slice(1),
      undefined,
      null,
      1,
      [example],
      { toString: () => example },
    ]) {
      assert.throws(() => parse(text), refused, String(text));
    }
  });
}

it("a sandbox's id is a DNS label of letters and digits", () => {
  assert.equal(parseSandboxId(`i${"0".repeat(20)}`), `i${"0".repeat(20)}`);
});

it("draws every letter of a sandbox's id equally often, and draws again what would favour some", () => {
  const counts = new Map<string, number>();
  let again = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    let draws = 0;
    const letter = newSandboxId({
      bytes: (length) => new Uint8Array(length).fill(draws++ === 0 ? byte : 0),
    }).charAt(1);
    if (draws > 1) again += 1;
    else counts.set(letter, (counts.get(letter) ?? 0) + 1);
  }
  assert.deepEqual([counts.size, new Set(counts.values()), again], [36, new Set([7]), 4]);
});

it("a digest is a SHA-256 in lower-case hexadecimal", () => {
  assert.equal(parseDigest("0f".repeat(32)), "0f".repeat(32));
  for (const text of ["0F".repeat(32), "0".repeat(63), "0".repeat(65), "g".repeat(64)]) {
    assert.throws(() => parseDigest(text), refused);
  }
});
