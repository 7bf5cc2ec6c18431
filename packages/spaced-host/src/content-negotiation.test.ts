// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  acceptedEncodings,
  contentDisposition,
  contentType,
  parseRange,
  resolveRange,
} from "./content-negotiation.ts";

it("takes gzip only from those who name it, and identity unless refused", () => {
  const cases: [string | undefined, boolean, boolean][] = [
    [undefined, false, true],
    ["", false, true],
    ["gzip, deflate", true, true],
    ["gzip;q=0", false, true],
    ["GZIP;q=0.5, identity;q=0", true, false],
    ["*", true, true],
    ["*;q=0", false, false],
    ["identity, *;q=0.000", false, true],
    ["br", false, true],
  ];
  for (const [header, gzip, identity] of cases) {
    assert.deepEqual(acceptedEncodings(header), { gzip, identity }, header);
  }
});

it("names a file so that no byte of its name can leave its place", () => {
  assert.equal(contentDisposition("/a/plain-1.txt"), "inline; filename=plain-1.txt");
  assert.equal(contentDisposition('/a/with "quotes" \\'), 'inline; filename="with \\"quotes\\" \\\\"');
  assert.equal(contentDisposition("/a/ä\r\nx: y"), "inline; filename*=utf-8''%C3%A4%0D%0Ax%3A%20y");
  assert.equal(contentDisposition("/a/it's\u0001"), "inline; filename*=utf-8''it%27s%01");
  assert.equal(contentType("/a/INDEX.HTML"), "text/html; charset=utf-8");
  assert.equal(contentType("/a/none"), "application/octet-stream");
});

it("reads one range of bytes and nothing else", () => {
  assert.deepEqual(parseRange("bytes=0-0"), { kind: "from", first: 0, last: 0 });
  assert.deepEqual(parseRange("bytes=5-"), { kind: "from", first: 5, last: undefined });
  assert.deepEqual(parseRange("bytes=-5"), { kind: "suffix", length: 5 });
  for (const text of [undefined, "", "bytes=-", "bytes=5-4", "bytes=0-1,2-3", "items=0-1", "bytes=a-b"]) {
    assert.equal(parseRange(text), undefined, text);
  }
});

it("cuts a range to the file", () => {
  assert.deepEqual(resolveRange({ kind: "from", first: 0, last: undefined }, 1), { first: 0, last: 0 });
  assert.deepEqual(resolveRange({ kind: "suffix", length: 9 }, 4), { first: 0, last: 3 });
  assert.equal(resolveRange({ kind: "from", first: 0, last: 5 }, 0), undefined);
  assert.equal(resolveRange({ kind: "suffix", length: 0 }, 4), undefined);
});
