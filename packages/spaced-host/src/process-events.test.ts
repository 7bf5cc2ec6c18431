// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { fromBinary, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { ProcessExit } from "@space/spaced-guest";
import { StartResponseSchema } from "@space/wire/envd";
import { dataEvent, endEvent, keepaliveEvent, startEvent } from "./process-events.ts";

const exits: ProcessExit[] = [
  { kind: "exited", code: 0 },
  { kind: "exited", code: 255 },
  { kind: "signalled", signal: 9 },
  { kind: "signalled", signal: 64 },
];

it("says the same in both codecs, as protobuf itself would", () => {
  const bytes = Buffer.from([0, 255, 34, 92, 200]);
  const events = (codec: "json" | "proto") => [
    startEvent(codec, 7),
    keepaliveEvent(codec),
    dataEvent(codec, "stdout", bytes),
    dataEvent(codec, "stderr", Buffer.alloc(0)),
    dataEvent(codec, "pty", Buffer.alloc(100_000, 1)),
    ...exits.map((exit) => endEvent(codec, exit)),
  ];
  const texts = events("json").map((framed) => JSON.parse(framed.toString("utf8", 5)) as JsonValue);
  const binaries = events("proto").map((framed) => fromBinary(StartResponseSchema, framed.subarray(5)));
  assert.deepEqual(
    binaries.map((message) => toJson(StartResponseSchema, message)),
    texts,
  );
  for (const text of texts)
    assert.deepEqual(toJson(StartResponseSchema, fromJson(StartResponseSchema, text)), text);
  for (const framed of events("json")) assert.equal(framed.readUInt32BE(1), framed.length - 5);
});

it("says how a process ended in the words that clients know", () => {
  const end = (exit: ProcessExit) =>
    (JSON.parse(endEvent("json", exit).toString("utf8", 5)) as { event: { end: unknown } }).event.end;
  assert.deepEqual(exits.map(end), [
    { exited: true, status: "exit status 0" },
    { exitCode: 255, exited: true, status: "exit status 255", error: "exit status 255" },
    { exitCode: -1, status: "signal: killed", error: "signal: killed" },
    { exitCode: -1, status: "signal: signal 64", error: "signal: signal 64" },
  ]);
});
