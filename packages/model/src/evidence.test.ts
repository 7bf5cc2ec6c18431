// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "./errors.ts";
import { evidenceToText, parseEvidence } from "./evidence.ts";
import type { EndpointEvidence } from "./ports/substrate.ts";

const evidence: EndpointEvidence = {
  hostBootId: "b",
  guest: { pid: 7, startTime: "123", executable: { device: "1", inode: "2" }, uid: 1000 },
  socketPath: "/run/x.sock",
  socketInode: "9",
  cgroup: "/space/x",
};

it("equal evidence has equal text, whatever the order of its members", () => {
  const { guest, ...rest } = evidence;
  assert.equal(evidenceToText({ guest, ...rest }), evidenceToText(evidence));
  assert.deepEqual(parseEvidence(evidenceToText(evidence)), evidence);
});

it("refuses a text that is not of its form", () => {
  const text = (change: object): string => JSON.stringify({ ...evidence, ...change });
  for (const bad of [
    "",
    "null",
    "{}",
    text({ x: 1 }),
    text({ hostBootId: 1 }),
    text({ guest: { ...evidence.guest, pid: -1 } }),
    text({ guest: { ...evidence.guest, pid: "7" } }),
    text({ guest: { ...evidence.guest, uid: 1.5 } }),
    text({ guest: { ...evidence.guest, executable: {} } }),
  ]) {
    assert.throws(
      () => parseEvidence(bad),
      (error) => isSpaceError(error, "input/invalid"),
      bad,
    );
  }
});
