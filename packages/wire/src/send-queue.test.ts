// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { frameType } from "./frame.ts";
import { type Listener, linked, rawPeer, settled } from "./linked.fixture.ts";
import { streamWindowBytes } from "./stream-window.ts";

it("an end right after its stream's bytes leaves in their frame, and one that comes later or after others' by itself", async () => {
  const peer = rawPeer();
  peer.send([frameType.open, 1], [frameType.open, 3], [frameType.open, 5], [frameType.open, 7]);
  await settled();
  const [first, second, third, fourth] = peer.accepted.map(({ stream }) => stream);
  first?.send(Buffer.from("a"));
  first?.end();
  second?.send(Buffer.alloc(streamWindowBytes / 2, "b"));
  second?.end();
  third?.send(Buffer.from("c"));
  fourth?.end();
  await settled();
  third?.end();
  await settled();
  const sent = peer.received.map(({ type, stream, payload }) => [type, stream, payload.length]);
  assert.deepEqual(sent, [
    [frameType.dataEnd, 1, 1],
    [frameType.dataEnd, 3, streamWindowBytes / 2],
    [frameType.data, 5, 1],
    [frameType.end, 7, 0],
    [frameType.end, 5, 0],
  ]);
});

it("tells bytes before the end that came with them, and no end when they reset the stream", async () => {
  const peer = rawPeer();
  peer.send([frameType.open, 1], [frameType.open, 3]);
  await settled();
  const [kept, refused] = peer.accepted as [Listener, Listener];
  refused.onData = () => refused.stream?.reset("no");
  peer.send([frameType.dataEnd, 1, "x"], [frameType.dataEnd, 3, "y"]);
  await settled();
  assert.deepEqual([kept.told, refused.told], [["data x", "end"], []]);
  assert.equal(peer.link.closed, false);
});

it("frames of many turns and of every length arrive as they were sent", async () => {
  const { accepted, open } = linked();
  const opener = open();
  const sent: Buffer[] = [];
  const received: Buffer[] = [];
  await settled();
  const [acceptor] = accepted as [Listener];
  acceptor.onData = (chunk) => {
    received.push(Buffer.from(chunk));
    acceptor.stream?.consumed(chunk.length);
  };
  for (let length = 1; length < 40_000; length = length * 2 + 1) {
    for (const fill of [1, 2, 3]) {
      const chunk = Buffer.alloc(length, fill + length);
      sent.push(chunk);
      opener.stream.send(chunk);
    }
    if (length % 3 === 0) await settled(4);
  }
  await settled(50);
  assert.ok(Buffer.concat(received).equals(Buffer.concat(sent)));
});
