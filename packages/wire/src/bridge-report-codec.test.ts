// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { auditFieldClasses, isSpaceError, parseActivationId, parseSandboxId } from "@space/model";
import { parseBridgeReport, parseSeenReport } from "./bridge-report-codec.ts";

const activationId = parseActivationId(`act_${"a".repeat(26)}`);
const sandboxId = parseSandboxId(`i${"0".repeat(20)}`);
const values: Readonly<Record<string, unknown>> = {
  activationId,
  sandboxId,
  from: activationId,
  to: activationId,
  pid: 5,
  problem: "pid",
  reason: "no lease",
  cutStreams: 2,
  times: 3,
};
/** The worker's own word about its bridge. */
const notTold = ["bridge/connected", "bridge/misbehaved"];
const told = Object.entries(auditFieldClasses)
  .filter(([name]) => name.startsWith("bridge/") && !notTold.includes(name))
  .map(([name, classes]) => ({
    name,
    fields: Object.fromEntries(Object.keys(classes).map((field) => [field, values[field]])),
  }));
const whole = { source: "0123456789abcdef", number: 1, events: told };
const refused = (error: unknown): boolean => isSpaceError(error, "input/invalid");

it("reads every event that the bridge has to tell, with every field of the table", () => {
  assert.ok(told.length >= 10);
  assert.deepEqual(parseBridgeReport(structuredClone(whole)), whole);
});

it("takes no event of another's, no other field, and no value of another form", () => {
  const [first] = told;
  assert.ok(first);
  const events: readonly unknown[] = [
    { name: "sandbox/changed", fields: {} },
    { name: "bridge/connected", fields: { known: 1, adopted: 1 } },
    { name: "toString", fields: {} },
    { name: first.name, fields: { ...first.fields, token: "secret" } },
    { name: first.name, fields: {} },
    { name: first.name },
    "bridge/fenced",
    null,
    ...told.flatMap(({ name, fields }) =>
      Object.keys(fields).map((field) => ({
        name,
        fields: { ...fields, [field]: field === "problem" ? "x".repeat(257) : "?" },
      })),
    ),
    ...[0, -1, 1.5, 2 ** 53, "1"].map((times) => ({ name: "bridge/fenced", fields: { times } })),
  ];
  for (const event of events)
    assert.throws(() => parseBridgeReport({ ...whole, events: [event] }), refused, JSON.stringify(event));
});

it("is bounded, and names its source and number", () => {
  const many = Array.from({ length: 33 }, () => ({ name: "bridge/fenced", fields: { times: 1 } }));
  for (const report of [
    { ...whole, events: many },
    { ...whole, events: "none" },
    { ...whole, source: "x" },
    { ...whole, number: -1 },
    { ...whole, more: 1 },
    undefined,
  ])
    assert.throws(() => parseBridgeReport(report), refused);
  assert.equal(parseBridgeReport({ ...whole, events: many.slice(1) }).events.length, 32);
  assert.equal(parseSeenReport(null), null);
  assert.throws(() => parseSeenReport({ source: whole.source }), refused);
});
