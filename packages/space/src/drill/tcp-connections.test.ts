// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { connectionOf } from "./tcp-connections.ts";

test("a line of ss is read: whose connection, between which ports, and how much it has sent", () => {
  const line =
    'ESTAB 0      0      127.0.0.1:54356 127.0.0.1:44851 users:(("MainThread",pid=11899,fd=34)) bbr wscale:10,10 segs_out:14 segs_in:10 data_segs_out:7 data_segs_in:5';
  assert.deepEqual(connectionOf(line), { pid: 11899, localPort: 54356, peerPort: 44851, dataSegments: 7 });
  const opening = 'SYN-SENT 0 1 [::1]:1 [::1]:2 users:(("node",pid=5,fd=9)) cubic';
  assert.deepEqual(connectionOf(opening), { pid: 5, localPort: 1, peerPort: 2, dataSegments: 0 });
  assert.throws(() => connectionOf("State Recv-Q"));
});
