// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { isSpaceError } from "@space/model";
import { frameType, headLimitBytes } from "./frame.ts";
import { Listener, linked, type RawFrame, rawPeer, settled } from "./linked.fixture.ts";
import { relayTo } from "./relay.ts";
import { streamBacklogLimitBytes, streamWindowBytes } from "./stream-window.ts";

it("carries a head and bytes each way, and each direction's end apart", async () => {
  const { near, far, accepted, open } = linked();
  const opener = open("hello");
  opener.stream.send(Buffer.from("ab"));
  opener.stream.end();
  await settled();
  const [acceptor] = accepted;
  assert.deepEqual(acceptor?.told, ["open hello", "data ab", "end"]);
  assert.equal(opener.stream.over, false);
  acceptor.stream?.sendProceed("adm");
  acceptor.stream?.sendHead("welcome", false);
  acceptor.stream?.send(Buffer.from("cd"));
  acceptor.stream?.end();
  await settled();
  assert.deepEqual(opener.told, ["proceed adm", "head welcome", "data cd", "end"]);
  assert.ok(opener.stream.over && acceptor.stream?.over);
  assert.deepEqual([near.size, far.size], [0, 0]);
});

it("is over at once when both heads say that nothing follows", async () => {
  const { near, far, accepted, open } = linked();
  const opener = open("a", true);
  await settled();
  accepted[0]?.stream?.sendHead("b", true);
  await settled();
  assert.deepEqual(
    [opener.told, accepted[0]?.told],
    [
      ["head b", "end"],
      ["open a", "end"],
    ],
  );
  assert.deepEqual([near.size, far.size], [0, 0]);
});

it("sends one head, one proceed before it, one end, and nothing after the end", async () => {
  const { accepted, open } = linked();
  const opener = open();
  await settled();
  const stream = accepted[0]?.stream;
  stream?.sendProceed("1");
  stream?.sendProceed("2");
  stream?.sendHead("1", false);
  stream?.sendHead("2", false);
  stream?.sendProceed("3");
  stream?.end();
  stream?.end();
  assert.equal(stream?.send(Buffer.from("late")), true);
  stream?.sendHead("3", true);
  await settled();
  assert.deepEqual(opener.told, ["proceed 1", "head 1", "end"]);
});

it("only the acceptor answers", () => {
  const { stream } = linked().open();
  assert.throws(() => stream.sendHead("", false), TypeError);
  assert.throws(() => stream.sendProceed(""), TypeError);
});

it("a reset ends both directions, tells only the other side, and nothing follows it", async () => {
  const { near, far, accepted, open } = linked();
  const opener = open();
  await settled();
  opener.stream.reset("enough");
  opener.stream.reset("again");
  opener.stream.send(Buffer.from("x"));
  opener.stream.end();
  opener.stream.consumed(1);
  accepted[0]?.stream?.send(Buffer.from("on its way"));
  await settled();
  assert.deepEqual([opener.told, accepted[0]?.told], [[], ["open ", "reset enough"]]);
  assert.deepEqual([near.size, far.size], [0, 0]);
});

it("a reset after the end still ends the other direction", async () => {
  const { accepted, open } = linked();
  const opener = open();
  opener.stream.end();
  opener.stream.reset("changed my mind");
  await settled();
  assert.deepEqual(accepted[0]?.told, ["open ", "end", "reset changed my mind"]);
});

it("calls nothing more when a handler resets in the middle of a frame", async () => {
  const { accepted, open } = linked();
  const opener = open();
  opener.onHead = () => opener.stream.reset("no");
  await settled();
  accepted[0]?.stream?.sendHead("x", true);
  await settled();
  assert.deepEqual(opener.told, []);
});

it("a slow reader of one stream holds up no other", async () => {
  const { accepted, open } = linked();
  const [slow, quick] = [open(), open()];
  await settled();
  const [held, free] = accepted as [Listener, Listener];
  held.holds = true;
  const chunk = Buffer.alloc(streamWindowBytes / 2);
  for (let n = 0; n < 8; n += 1) {
    slow.stream.send(chunk);
    quick.stream.send(chunk);
  }
  await settled(100);
  assert.equal(held.receivedBytes, streamWindowBytes);
  assert.equal(free.receivedBytes, 8 * chunk.length);
  held.release();
  await settled(100);
  assert.equal(held.receivedBytes, 8 * chunk.length);
});

it("says when to stop and when to go on", async () => {
  const { accepted, open } = linked();
  const opener = open();
  await settled();
  const [acceptor] = accepted as [Listener];
  acceptor.holds = true;
  assert.equal(opener.stream.send(Buffer.alloc(streamWindowBytes - 1)), true);
  assert.equal(opener.stream.send(Buffer.from("x")), false);
  assert.equal(opener.stream.send(Buffer.from("y")), false);
  await settled();
  assert.deepEqual([opener.told, acceptor.receivedBytes], [[], streamWindowBytes]);
  acceptor.release();
  await settled();
  assert.deepEqual([opener.told, acceptor.receivedBytes], [["drain"], streamWindowBytes + 1]);
});

it("a chunk of many windows arrives whole, before the end that follows it", async () => {
  const { near, accepted, open } = linked();
  const opener = open();
  const size = 9 * streamWindowBytes + 5;
  assert.equal(opener.stream.send(Buffer.alloc(size)), false);
  opener.stream.end();
  await settled(200);
  assert.equal(accepted[0]?.receivedBytes, size);
  assert.deepEqual(accepted[0]?.told.at(-1), "end");
  assert.deepEqual([opener.told, near.closed], [[], false]);
});

it("breaks off a stream whose user never stops", async () => {
  const { near, accepted, open } = linked();
  const opener = open();
  await settled();
  (accepted[0] as Listener).holds = true;
  const chunk = Buffer.alloc(streamBacklogLimitBytes / 2);
  for (let n = 0; n < 4; n += 1) opener.stream.send(chunk);
  await settled();
  assert.deepEqual(opener.told, ["reset link/backlog"]);
  assert.equal(accepted[0]?.told.at(-1), "reset link/backlog");
  assert.equal(near.closed, false);
});

it("an answer's head above the limit breaks off its stream on both sides", async () => {
  const { near, accepted, open } = linked();
  const opener = open();
  await settled();
  accepted[0]?.stream?.sendHead("x".repeat(headLimitBytes + 1), true);
  await settled();
  assert.deepEqual(opener.told, ["reset link/head-too-large"]);
  assert.equal(accepted[0]?.told.at(-1), "reset link/head-too-large");
  assert.equal(near.closed, false);
});

it("calls giving back more than has come a bug of that stream", async () => {
  const { bugs, accepted, open } = linked();
  const opener = open();
  await settled();
  const [acceptor] = accepted as [Listener];
  acceptor.onData = ({ length }) => acceptor.stream?.consumed(length + 1);
  opener.stream.send(Buffer.from("abc"));
  await settled();
  assert.ok(bugs[0] instanceof TypeError);
  assert.deepEqual(opener.told, ["reset internal/bug"]);
});

it("takes new handlers for what comes next", async () => {
  const { accepted, open } = linked();
  const opener = open();
  await settled();
  const later = new Listener();
  accepted[0]?.stream?.handle(later);
  opener.stream.send(Buffer.from("a"));
  await settled();
  assert.deepEqual([accepted[0]?.told, later.told], [["open "], ["data a"]]);
});

it("passes on a reset's word only as a word", async () => {
  const peer = rawPeer();
  peer.send(
    [frameType.open, 1],
    [frameType.open, 3],
    [frameType.open, 5],
    [frameType.reset, 1, "\u001b[31m"],
    [frameType.reset, 3, ""],
    [frameType.reset, 5, "x".repeat(100)],
  );
  await settled();
  const told = peer.accepted.map((listener) => listener.told[0]);
  assert.deepEqual(told, ["reset unknown", "reset unknown", `reset ${"x".repeat(64)}`]);
});

const window = "x".repeat(streamWindowBytes);
const openersBreaches: Record<string, RawFrame[]> = {
  "more than the window": [
    [frameType.open, 1],
    [frameType.data, 1, window],
    [frameType.data, 1, "x"],
  ],
  "bytes after the end": [
    [frameType.open, 1],
    [frameType.end, 1],
    [frameType.data, 1, "x"],
  ],
  "bytes after an end that came with bytes": [
    [frameType.open, 1],
    [frameType.dataEnd, 1, "x"],
    [frameType.data, 1, "x"],
  ],
  "a second end": [
    [frameType.openEnd, 1],
    [frameType.end, 1],
  ],
  "a second end with bytes": [
    [frameType.openEnd, 1],
    [frameType.dataEnd, 1, "x"],
  ],
  "a head of a stream that the peer opened": [
    [frameType.open, 1],
    [frameType.head, 1, "x"],
  ],
  "a proceed of a stream that the peer opened": [
    [frameType.open, 1],
    [frameType.proceed, 1, "x"],
  ],
  "credit for what was not sent": [
    [frameType.open, 1],
    [frameType.credit, 1, Buffer.from([0, 0, 0, 1])],
  ],
  "credit of another form": [
    [frameType.open, 1],
    [frameType.credit, 1, "x"],
  ],
  "a frame of no known type": [[99, 1]],
  "a frame of type 0": [[0, 1]],
  "a stream of this side's parity": [[frameType.open, 2]],
  "stream 0": [[frameType.open, 0]],
  "a stream that is open already": [
    [frameType.open, 1],
    [frameType.open, 1],
  ],
  "a head above the limit": [[frameType.open, 1, "x".repeat(headLimitBytes + 1)]],
};
for (const [what, frames] of Object.entries(openersBreaches)) {
  it(`a peer that sends ${what} ends the link`, async () => {
    const peer = rawPeer();
    peer.send([frameType.open, 101], ...frames);
    await settled();
    assert.ok(peer.link.closed);
    assert.ok(isSpaceError(peer.closes[0], "link/protocol"));
    assert.equal(peer.accepted[0]?.told.at(-1), "reset link/closed");
  });
}

const acceptorsBreaches: Record<string, RawFrame[]> = {
  "a second head": [
    [frameType.head, 2, "a"],
    [frameType.head, 2, "b"],
  ],
  "a proceed after the head": [
    [frameType.head, 2, "a"],
    [frameType.proceed, 2, "b"],
  ],
  "a second proceed": [
    [frameType.proceed, 2, "a"],
    [frameType.proceed, 2, "b"],
  ],
  "a proceed after the end": [
    [frameType.end, 2],
    [frameType.proceed, 2, "b"],
  ],
  "a head after the end": [
    [frameType.end, 2],
    [frameType.head, 2, "b"],
  ],
  "a head above the limit": [[frameType.head, 2, "x".repeat(headLimitBytes + 1)]],
};
for (const [what, frames] of Object.entries(acceptorsBreaches)) {
  it(`an acceptor that sends ${what} ends the link`, async () => {
    const peer = rawPeer();
    const opener = new Listener();
    peer.link.open("", opener, false);
    await settled();
    peer.send(...frames);
    await settled();
    assert.ok(isSpaceError(peer.closes[0], "link/protocol"));
    assert.equal(opener.told.at(-1), "reset link/closed");
  });
}

it("a link without an acceptor takes no streams", async () => {
  const { near, far } = linked();
  far.open("x", new Listener(), false);
  await settled();
  assert.ok(near.closed);
});

it("a relay gives credit back as fast as its target takes bytes, and passes ends and resets", async () => {
  const first = linked();
  const second = linked();
  const from = first.open();
  await settled();
  const middle = first.accepted[0]?.stream;
  const target = new Listener();
  const to = second.near.open("", target, false);
  assert.ok(middle !== undefined);
  const relay = relayTo(middle, to);
  middle.handle(relay);
  target.onDrain = () => relay.onDrainOfTarget();
  await settled();
  const [end] = second.accepted as [Listener];
  end.holds = true;
  from.stream.send(Buffer.alloc(4 * streamWindowBytes));
  await settled(100);
  assert.equal(end.receivedBytes, streamWindowBytes);
  end.release();
  await settled(200);
  assert.equal(end.receivedBytes, 4 * streamWindowBytes);
  from.stream.end();
  from.stream.reset("gone");
  await settled();
  assert.deepEqual(end.told.slice(-2), ["end", "reset gone"]);
});
