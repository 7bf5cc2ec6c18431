// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { judgeDaemon } from "./daemon-gate.ts";

const peer = { pid: 5, uid: 0, startTime: "9", executable: { device: "8", inode: "12" } };
const rule = { uid: 0, executable: { device: "8", inode: "12" } };

it("R-19: admits the daemon's user and executable", () => {
  judgeDaemon(peer, rule);
  judgeDaemon({ pid: 5, uid: 0, startTime: "9" }, { uid: 0 });
});

it("R-19: refuses another user or executable, and what cannot be read", () => {
  const mismatch = (error: unknown) => isSpaceError(error, "endpoint/mismatch");
  const unverifiable = (error: unknown) => isSpaceError(error, "endpoint/unverifiable");
  assert.throws(() => judgeDaemon({ ...peer, uid: 1 }, rule), mismatch);
  assert.throws(() => judgeDaemon({ ...peer, executable: { device: "8", inode: "13" } }, rule), mismatch);
  assert.throws(() => judgeDaemon({ ...peer, executable: { device: "9", inode: "12" } }, rule), mismatch);
  assert.throws(() => judgeDaemon({ pid: 5, uid: 0, startTime: "9" }, rule), unverifiable);
  assert.throws(() => judgeDaemon(undefined, { uid: 0 }), unverifiable);
});
