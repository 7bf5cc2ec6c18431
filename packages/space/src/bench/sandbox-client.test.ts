// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { outputIn } from "./sandbox-client.ts";

function stream(...messages: readonly object[]): Buffer {
  return Buffer.concat(
    messages.map((message) => {
      const body = Buffer.from(JSON.stringify(message));
      const head = Buffer.alloc(5);
      head.writeUInt32BE(body.length, 1);
      return Buffer.concat([head, body]);
    }),
  );
}

describe("the output in the messages of a process", () => {
  it("is what it wrote to its output, in order, and nothing else", () => {
    const data = (kind: string, text: string) => ({
      event: { data: { [kind]: Buffer.from(text).toString("base64") } },
    });
    const messages = [
      { event: { start: { pid: 7 } } },
      data("stdout", "one "),
      data("stderr", "not this "),
      data("stdout", "twó"),
      { event: { end: { status: "exit status 0" } } },
      {},
    ];
    assert.equal(outputIn(stream(...messages)), "one twó");
  });

  it("is empty when there is none", () => {
    assert.equal(outputIn(Buffer.alloc(0)), "");
  });
});
