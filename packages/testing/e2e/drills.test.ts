// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The drills of `./space drill`, smaller: real gateways, workers, guests, and E2B's own client.

import assert from "node:assert/strict";
import { test } from "node:test";
import { drillCut, drillKeys, drillMoves, drillTerminal } from "@space/space";
import { needsRoot as skip } from "../src/needs-root.ts";
import { sharedRig } from "../src/shared-rig.ts";

const rig = sharedRig({ workers: 2 });

test("R-13, R-24: callers of two gateways get nothing wrong while sandboxes move between two workers", {
  skip,
}, async () => {
  const report = await drillMoves(rig().system, { callers: 40, cycles: 12, sandboxes: 4, paceMs: 50 });
  assert.deepEqual(
    [report.moved, report.wrongAnswers, report.errorKinds, report.ok],
    [12, [], {}, true],
    JSON.stringify(report),
  );
  assert.ok(report.repairs > 0, "stale routes were presented, and repaired");
});

test("R-22: what is typed into a terminal across pauses arrives once and in order, and so does what it shows", {
  skip,
}, async () => {
  const report = await drillTerminal(rig().system, { bytes: 1000, pauses: 5 });
  assert.deepEqual(
    [report.kept, report.readAsTyped, report.shownAsTyped, report.ok],
    [5, true, true, true],
    JSON.stringify(report),
  );
  assert.ok(report.typedIntoPauses > 0 && report.continuedStreams >= 5, JSON.stringify(report));
});

test("R-21: every stream of a sandbox ends with its epoch, within 100 ms of the first, and no piece comes after", {
  skip,
}, async () => {
  const report = await drillCut(rig().system, { streams: 24, rounds: 2 });
  assert.deepEqual([report.outlived, report.reasons], [0, { "epoch-ended": 48 }], JSON.stringify(report));
  assert.ok(report.lastHeardMs <= report.limitMs, JSON.stringify(report));
  assert.equal(report.ok, true);
});

test("R-10: under load no rotation refuses a valid caller, and a revoked key counts nowhere once the command has answered", {
  skip,
}, async () => {
  const report = await drillKeys(rig().system, { callers: 10, rounds: 2, paceMs: 50 });
  assert.deepEqual(
    [report.revocations, report.refusals, report.oldRefused, report.admittedAfterwards, report.ok],
    [2, {}, 0, 0, true],
    JSON.stringify(report),
  );
  assert.ok(report.requests > 50 && report.oldRequests > 10, JSON.stringify(report));
});
