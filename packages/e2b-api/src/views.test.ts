// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  parseDigest,
  parseSandboxId,
  parseWorkerId,
  type SandboxState,
  type SandboxView,
  Secret,
} from "@space/model";

import { connectedJson, detailJson, listedJson, shownState } from "./views.ts";

const settings = { domain: "space.test:8443", envdVersion: "0.6.13" };
const view: SandboxView = {
  sandboxId: parseSandboxId("iaaaaaaaaaaaaaaaaaaa1"),
  template: "base",
  alias: "base",
  metadata: { a: "b" },
  state: "running",
  startedAtMs: Date.UTC(2026, 10, 30, 1, 2, 3, 4),
  endAtMs: Date.UTC(2026, 10, 30, 1, 7, 3, 0),
  cpus: 2,
  memoryMb: 512,
  diskMb: 1024,
  onTimeout: "pause",
  autoResume: true,
  generation: 2n ** 60n,
  workerId: parseWorkerId("wrk_aaaaaaaaaaaaaaaa"),
  autoRecover: false,
  lostReason: null,
  recoveredFrom: null,
  snapshot: { digest: parseDigest("d".repeat(64)), memory: "none", sizeBytes: 7 },
};

describe("a sandbox, as E2B describes it", () => {
  it("shows its tokens to who created or connected, and to nobody else", () => {
    const connected = {
      ...view,
      accessToken: new Secret("at"),
      trafficAccessToken: new Secret("tt"),
      resumed: false,
    };
    assert.deepEqual(connectedJson(connected, settings), {
      sandboxID: "iaaaaaaaaaaaaaaaaaaa1",
      templateID: "base",
      clientID: "space",
      alias: "base",
      envdVersion: "0.6.13",
      domain: "space.test:8443",
      envdAccessToken: "at",
      trafficAccessToken: "tt",
    });
    const without = { ...connected, alias: null, trafficAccessToken: null };
    assert.deepEqual(Object.keys(connectedJson(without, settings) as object).sort(), [
      "clientID",
      "domain",
      "envdAccessToken",
      "envdVersion",
      "sandboxID",
      "templateID",
    ]);
    assert.doesNotMatch(JSON.stringify(detailJson(connected, "running", settings)), /"at"|"tt"|secret/);
  });

  it("shows times to the millisecond, and the generation as text that no reader rounds", () => {
    assert.deepEqual(detailJson(view, "running", settings), {
      sandboxID: "iaaaaaaaaaaaaaaaaaaa1",
      templateID: "base",
      clientID: "space",
      alias: "base",
      envdVersion: "0.6.13",
      domain: "space.test:8443",
      startedAt: "2026-11-30T01:02:03.004Z",
      endAt: "2026-11-30T01:07:03.000Z",
      state: "running",
      cpuCount: 2,
      memoryMB: 512,
      diskSizeMB: 1024,
      metadata: { a: "b" },
      volumeMounts: [],
      lifecycle: { autoResume: true, onTimeout: "pause" },
      space: {
        generation: "1152921504606846976",
        workerID: "wrk_aaaaaaaaaaaaaaaa",
        autoRecover: false,
        recoveredFrom: null,
        snapshot: { digest: "d".repeat(64), memory: "none", sizeBytes: 7 },
      },
    });
  });

  it("has neither policy nor placement in a list", () => {
    const listed = listedJson(view, "paused", settings) as object;
    assert.equal("lifecycle" in listed || "space" in listed || "domain" in listed, false);
  });

  it("is running, paused, lost or not there", () => {
    const shown = (state: SandboxState, snapshot = view.snapshot): unknown =>
      shownState({ ...view, state, snapshot });
    assert.equal(shown("creating"), "running");
    assert.equal(shown("running"), "running");
    for (const state of ["pausing", "paused", "resuming"] as const) assert.equal(shown(state), "paused");
    for (const state of ["killing", "killed", "failed"] as const) assert.equal(shown(state), undefined);
    assert.equal(shown("lost"), "lost", "statement 5: never taken for paused");
    assert.equal(shown("lost", null), "lost");
  });
});
