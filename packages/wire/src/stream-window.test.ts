// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { ReceiveWindow, SendWindow, streamBacklogLimitBytes, streamWindowBytes } from "./stream-window.ts";

const credit = (bytes: number): Buffer => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return payload;
};

const protocol = (error: unknown): boolean => isSpaceError(error, "link/protocol");

function sender(): { window: SendWindow; sent: Buffer[]; sentBytes: () => number } {
  const sent: Buffer[] = [];
  const window = new SendWindow((bytes) => sent.push(bytes));
  return { window, sent, sentBytes: () => sent.reduce((sum, { length }) => sum + length, 0) };
}

it("sends at once what the credit covers", () => {
  const { window, sent } = sender();
  assert.ok(window.push(Buffer.from("a")));
  assert.ok(window.push(Buffer.alloc(0)));
  assert.deepEqual(sent, [Buffer.from("a")]);
  assert.ok(window.open && window.idle);
});

it("keeps the rest in order until credit comes", () => {
  const { window, sent, sentBytes } = sender();
  const first = Buffer.alloc(streamWindowBytes - 1, 1);
  window.push(first);
  window.push(Buffer.from("abc"));
  window.push(Buffer.from("de"));
  assert.equal(sentBytes(), streamWindowBytes);
  assert.equal(window.idle, false);
  window.credited(credit(1));
  window.credited(credit(2));
  assert.equal(Buffer.concat(sent.slice(1)).toString(), "abcd");
  window.credited(credit(10));
  assert.equal(Buffer.concat(sent.slice(1)).toString(), "abcde");
  assert.ok(window.open);
});

it("is idle but not open when exactly the credit was used", () => {
  const { window } = sender();
  window.push(Buffer.alloc(streamWindowBytes));
  assert.ok(window.idle && !window.open);
});

it("refuses to keep ever more", () => {
  const { window } = sender();
  const chunk = Buffer.alloc(streamBacklogLimitBytes / 4);
  for (let n = 0; n < 5; n += 1) assert.ok(window.push(chunk));
  assert.equal(window.push(chunk), false);
  window.clear();
  assert.ok(window.idle);
});

it("refuses credit for what was never sent, and a credit of another form", () => {
  const { window } = sender();
  assert.throws(() => window.credited(credit(1)), protocol);
  assert.throws(() => window.credited(Buffer.alloc(3)), protocol);
});

it("refuses more than the window, whether unconsumed or with the credit not sent yet", () => {
  const whole = new ReceiveWindow();
  whole.received(streamWindowBytes);
  assert.throws(() => whole.received(1), protocol);
  const consumed = new ReceiveWindow();
  consumed.received(10);
  assert.equal(consumed.consumed(10), undefined);
  assert.throws(() => consumed.received(streamWindowBytes - 9), protocol);
});

it("gives credit back in steps of a quarter of the window", () => {
  const window = new ReceiveWindow();
  window.received(streamWindowBytes);
  assert.equal(window.consumed(streamWindowBytes / 4 - 1), undefined);
  assert.deepEqual(window.consumed(1), credit(streamWindowBytes / 4));
  window.received(streamWindowBytes / 4);
});

it("calls giving back more than has come a bug", () => {
  const window = new ReceiveWindow();
  window.received(1);
  assert.throws(() => window.consumed(2), TypeError);
});
