// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "./errors.ts";
import {
  compareIdentity,
  type ExecutionIdentity,
  freezeIdentity,
  identityToJson,
  members,
  parseIdentity,
  sameRoute,
} from "./identity.ts";

const json = {
  sandboxId: `i${"a".repeat(20)}`,
  generation: "2",
  placement: { workerId: `wrk_${"a".repeat(16)}`, substrate: "namespace" },
  activation: { id: `act_${"a".repeat(26)}`, attempt: 1 },
};
const inPod = { ...json, placement: { ...json.placement, substrate: "kubernetes", podUid: "7c1f-1" } };
const identity = parseIdentity(json);
const changed = (change: object): ExecutionIdentity => parseIdentity({ ...json, ...change });
const refused = (error: unknown): boolean => isSpaceError(error, "input/invalid");

it("reads its JSON form, and writes the same text whatever the order was", () => {
  const reversed = Object.fromEntries(Object.entries(json).reverse());
  assert.equal(JSON.stringify(identityToJson(parseIdentity(reversed))), JSON.stringify(json));
  assert.equal(JSON.stringify(identityToJson(parseIdentity(inPod))), JSON.stringify(inPod));
  assert.equal(identity.generation, 2n);
});

it("cannot be changed, and has no member that is not known", () => {
  const wide = { ...identity, more: 1, placement: { ...identity.placement, address: "10.0.0.1" } };
  const frozen = freezeIdentity(wide);
  assert.deepEqual(frozen, identity);
  for (const part of [frozen, frozen.placement, frozen.activation]) assert.ok(Object.isFrozen(part));
});

for (const change of [
  { sandboxId: "x" },
  { sandboxId: undefined },
  { generation: 2 },
  { generation: "0" },
  { placement: null },
  { placement: {} },
  { placement: { ...json.placement, workerId: "x" } },
  { placement: { ...json.placement, substrate: "docker" } },
  { placement: { ...json.placement, substrate: 1 } },
  { placement: { ...json.placement, podUid: "" } },
  { placement: { ...json.placement, podUid: "a b" } },
  { placement: { ...json.placement, podUid: 1 } },
  { placement: { ...json.placement, address: "10.0.0.1" } },
  { activation: [] },
  { activation: { id: json.activation.id } },
  { activation: { ...json.activation, attempt: 0 } },
  { activation: { ...json.activation, attempt: 1.5 } },
  { activation: { ...json.activation, attempt: "1" } },
  { activation: { ...json.activation, attempt: 2 ** 53 } },
  { more: 1 },
]) {
  it(`refuses an identity with ${JSON.stringify(change)}`, () => {
    assert.throws(() => changed(change), refused);
  });
}

it("refuses what is no object", () => {
  for (const value of [null, undefined, 1, "x", [json]]) assert.throws(() => parseIdentity(value), refused);
});

it("R-13: tells what differs first", () => {
  const other = (letter: string): object => ({
    workerId: `wrk_${letter.repeat(16)}`,
    substrate: "namespace",
  });
  const cases = [
    [identity, "identical"],
    [changed({ sandboxId: `i${"b".repeat(20)}`, generation: "9" }), "other-sandbox"],
    [changed({ generation: "1", placement: other("b") }), "older-generation"],
    [changed({ generation: "10" }), "newer-generation"],
    [changed({ placement: other("b"), activation: { ...json.activation, attempt: 2 } }), "other-placement"],
    [changed({ placement: { ...json.placement, substrate: "qemu" } }), "other-placement"],
    [changed({ activation: { ...json.activation, id: `act_${"b".repeat(26)}` } }), "other-activation"],
    [changed({ activation: { ...json.activation, attempt: 2 } }), "other-activation"],
  ] as const;
  for (const [claimed, expected] of cases) assert.equal(compareIdentity(claimed, identity), expected);
});

it("R-2: another pod, or none, is another placement", () => {
  const pod = parseIdentity(inPod);
  const otherPod = parseIdentity({ ...inPod, placement: { ...inPod.placement, podUid: "other" } });
  const { podUid: _podUid, ...noPod } = inPod.placement;
  assert.equal(compareIdentity(otherPod, pod), "other-placement");
  assert.equal(compareIdentity(parseIdentity({ ...inPod, placement: noPod }), pod), "other-placement");
});

it("R-4: an identity says nothing of who drives the sandbox's lifecycle, and takes nothing of it", () => {
  assert.deepEqual(Object.keys(identityToJson(identity)), [
    "sandboxId",
    "generation",
    "placement",
    "activation",
  ]);
  for (const name of ["owner", "replica", "controlPlane"])
    assert.throws(() => changed({ [name]: "cp_1" }), refused);
});

it("R-3: a route is the same whatever the activation", () => {
  const activation = { id: `act_${"b".repeat(26)}`, attempt: 4 };
  assert.ok(sameRoute(identity, changed({ activation })));
  for (const change of [
    { sandboxId: `i${"b".repeat(20)}` },
    { generation: "3" },
    { placement: { ...json.placement, substrate: "qemu" } },
  ]) {
    assert.equal(sameRoute(identity, changed(change)), false);
  }
});

it("members: all that are required, some that are optional, nothing else, and nothing inherited", () => {
  assert.deepEqual(members({ a: 1, b: 2 }, "x", ["a"], ["b", "c"]), { a: 1, b: 2 });
  const inherited: unknown = Object.create({ a: 1 });
  const proto: unknown = JSON.parse('{"a":1,"__proto__":2}');
  for (const value of [{}, { b: 1 }, { a: 1, d: 1 }, inherited, proto, null, [], "a", undefined]) {
    assert.throws(() => members(value, "x", ["a"], ["b"]), refused);
  }
  assert.throws(
    () => members({ a: 1 }, "x", ["a", "b"]),
    (error) => isSpaceError(error, "input/invalid") && error.details.problem === "lacks b",
  );
});
