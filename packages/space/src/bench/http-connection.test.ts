// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnswer } from "./http-connection.ts";

const whole = "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello";
const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";

test("an answer is read when it is whole, and not before", () => {
  for (const [text, status, body] of [
    [whole, 201, "hello"],
    [chunked, 200, "hello world"],
  ] as const) {
    for (let length = 0; length < text.length; length += 1) {
      assert.equal(readAnswer(Buffer.from(text.slice(0, length))), undefined, `${length} bytes`);
    }
    const answer = readAnswer(Buffer.from(text));
    assert.equal(answer?.status, status);
    assert.equal(answer?.body.toString(), body);
  }
});

test("an answer without a length has no body", () => {
  const answer = readAnswer(Buffer.from("HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n"));
  assert.deepEqual([answer?.status, answer?.body.length], [204, 0]);
});
