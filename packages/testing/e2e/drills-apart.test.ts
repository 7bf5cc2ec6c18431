// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// The drills of `./space drill` in which workers and control plane cannot hear each other, shorter. They wait for most of
// their time (the shortest lease is 15 s), so they do it beside each other.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { drillLease, drillOutage, partitionInOwnNetwork, withControlApart, withSystem } from "@space/space";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";

const resourcesBefore = hostResources();
const leaseSeconds = 15;

after(() => {
  if (skip === false) assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

describe("while workers and control plane cannot hear each other", { concurrency: true }, () => {
  test("R-15, R-16: a worker that is stopped, and goes on, never acts beside the generation that was recovered elsewhere", {
    skip,
  }, async () => {
    const limits = { leaseMs: leaseSeconds * 1000 };
    const report = await withSystem(2, (system, data) => drillLease(system, { data, stopSeconds: 25 }), {
      limits,
    });
    assert.deepEqual(
      [report.oldAdmitted, report.lateStreamBytes, report.r15WindowMs, report.ok],
      [0, 0, 0, true],
      JSON.stringify(report),
    );
    assert.ok(report.lastOldActMs < report.firstNewActMs, JSON.stringify(report));
  });

  test("R-15, R-16: a worker whose links are down fences itself before its sandbox acts elsewhere, and within a lease of a kill", {
    skip,
  }, async () => {
    const report = await partitionInOwnNetwork({ leaseSeconds, cutSeconds: 25 });
    assert.deepEqual([report.lateStreamBytes, report.ok], [0, true], JSON.stringify(report));
    assert.ok(report.lastOldActMs < report.firstNewActMs, JSON.stringify(report));
    assert.ok(report.r15WindowMs > 0 && report.r15WindowMs <= report.r15LimitMs, JSON.stringify(report));
  });

  test("R-13, R-16, R-25: with the control plane's process stopped every live entry serves, and nobody asks another machine", {
    skip,
  }, async () => {
    const options = { outageSeconds: 5, callers: 40, rampSeconds: 2, streams: 3, paceMs: 100 };
    const report = await withControlApart(2, (stage) => drillOutage(stage, options));
    assert.deepEqual(
      [report.failures, report.asked, report.workersToOthers, report.streamsCut, report.ok],
      [{}, 0, 0, 0, true],
      JSON.stringify(report),
    );
    assert.ok(report.liveRequests > 100, JSON.stringify(report));
  });
});
