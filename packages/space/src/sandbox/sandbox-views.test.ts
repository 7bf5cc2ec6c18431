// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { detailText, listText, spanText, tableText } from "./sandbox-views.ts";

const sandbox = {
  sandboxID: "iaaaaaaaaaaaaaaaaaaaa",
  templateID: "base",
  state: "running",
  startedAt: "2026-01-01T00:00:00.000Z",
  endAt: "2026-01-01T01:00:00.000Z",
  cpuCount: 2,
  memoryMB: 512,
  metadata: { owner: "me" },
};
const detail = {
  ...sandbox,
  lifecycle: { autoResume: true, onTimeout: "pause" },
  space: {
    generation: "7",
    workerID: "wrk_aaaaaaaaaaaaaaaa",
    autoRecover: false,
    recoveredFrom: "5",
    snapshot: { digest: "ab".repeat(32), memory: "none", sizeBytes: 12 },
  },
};

describe("what is shown of sandboxes", () => {
  it("is a table with the times that are left", () => {
    const nowMs = Date.parse("2026-01-01T00:10:05.000Z");
    const paused = { ...sandbox, state: "paused", metadata: {} };
    assert.equal(
      listText([sandbox, paused], nowMs),
      [
        "SANDBOX                STATE    TEMPLATE  STARTED     ENDS        METADATA",
        "iaaaaaaaaaaaaaaaaaaaa  running  base      10m 5s ago  in 49m 55s  owner=me",
        "iaaaaaaaaaaaaaaaaaaaa  paused   base      10m 5s ago  -           -",
        "",
      ].join("\n"),
    );
  });

  it("names generation, activation, worker, chain, snapshot and end of one", () => {
    const chain = { activation: "act_x", attempt: 2, certificates: 3, snapshots: 1 };
    const text = detailText(detail, chain);
    for (const part of [
      "generation  7\n",
      "activation  act_x, attempt 2\n",
      "worker      wrk_aaaaaaaaaaaaaaaa\n",
      "chain       3 certificates, 1 snapshots, verified to the root\n",
      `snapshot    ${"ab".repeat(32)}, 12 bytes, memory: none\n`,
      "ends        2026-01-01T01:00:00.000Z, then pause, wakes for a request\n",
      "recovered   without what generation 5 wrote after its newest snapshot\n",
    ])
      assert.ok(text.includes(part), `${part}\n${text}`);
    assert.ok(!detailText(detail, undefined).includes("verified"));
  });

  it("cannot play with the terminal", () => {
    const text = tableText([["a"], ["\u001b[31mred\nline"], ["ü"]]);
    assert.match(text, /^[\x20-\x7e\n]*$/);
    assert.equal(text.split("\n").length, 4);
  });

  it("tells spans by their two largest units", () => {
    const spans = [-5, 999, 61_000, 3_600_000, 90_000_000].map(spanText);
    assert.deepEqual(spans, ["0s", "0s", "1m 1s", "1h 0m", "1d 1h"]);
  });
});
