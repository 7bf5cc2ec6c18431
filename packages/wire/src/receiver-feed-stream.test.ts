// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  type FeedItem,
  isSpaceError,
  parseDigest,
  parseSandboxId,
  type ReceiverFeed,
  SpaceError,
} from "@space/model";
import { encodeLine, LineReader } from "./json-lines.ts";
import { type Linked, linked, settled } from "./linked.fixture.ts";
import { feedWindow, isFeedHead, receiverFeedOver, serveReceiverFeed } from "./receiver-feed-stream.ts";

const digest = parseDigest("d".repeat(64));
const sandboxId = parseSandboxId(`i${"s".repeat(20)}`);
const items: readonly FeedItem[] = [
  { position: null, entry: { kind: "keys", bundle: "b.b.b" } },
  { position: 7, entry: { kind: "retire", retirement: "r.r.r", keepFrozen: digest } },
  { position: 8, entry: { kind: "retire", retirement: "r.r.r", keepFrozen: null } },
  { position: 9, entry: { kind: "discard", sandboxId, manifest: digest } },
  { position: null, entry: { kind: "install", certificate: "c.c.c" } },
  { position: null, entry: { kind: "lease", grant: "l.l.l" } },
];
const retire = (position: number): FeedItem => ({
  position,
  entry: { kind: "retire", retirement: "r.r.r", keepFrozen: null },
});
const code = (name: string) => (error: unknown) => isSpaceError(error) && error.code === name;

/** A receiver that answers when told to. */
class Receiver implements ReceiverFeed {
  readonly told: FeedItem[] = [];
  readonly answers: PromiseWithResolvers<void>[] = [];

  tell(item: FeedItem): Promise<void> {
    this.told.push(item);
    const answer = Promise.withResolvers<void>();
    this.answers.push(answer);
    return answer.promise;
  }
}

function fed(receiver: ReceiverFeed): Linked {
  return linked({
    onOpen: (stream, head) => {
      assert.ok(isFeedHead(head));
      return serveReceiverFeed(stream, receiver);
    },
  });
}

it("R-12: a receiver is told everything, in the order of the calls, and each answer reaches its item", async () => {
  const receiver = new Receiver();
  const { near } = fed(receiver);
  const feed = receiverFeedOver(near);
  const done: number[] = [];
  const telling = items.map((item, at) => feed.tell(item).then(() => done.push(at)));
  await settled();
  assert.deepEqual(receiver.told, items);
  assert.deepEqual(done, [], "nothing is acknowledged before the receiver has applied it");
  for (const at of [3, 0, 5, 1, 2, 4]) {
    receiver.answers[at]?.resolve();
    await settled();
  }
  await Promise.all(telling);
  assert.deepEqual(done, [3, 0, 5, 1, 2, 4]);
});

it("R-12: the receiver's refusal comes back, and the feed goes on", async () => {
  const receiver = new Receiver();
  const { near, bugs } = fed(receiver);
  const feed = receiverFeedOver(near);
  const refused = feed.tell(retire(1));
  const broken = feed.tell(retire(2));
  const applied = feed.tell(retire(3));
  await settled();
  receiver.answers[0]?.reject(new SpaceError("certificate/refused", { problem: "key" }));
  receiver.answers[1]?.reject(new TypeError("a bug"));
  receiver.answers[2]?.resolve();
  await assert.rejects(refused, code("certificate/refused"));
  await assert.rejects(broken, code("internal/bug"));
  await applied;
  assert.equal(bugs.length, 1);
});

it("R-12: what was not acknowledged when the link ended is unknown, and over a new one it is told again", async () => {
  const receiver = new Receiver();
  const first = fed(receiver);
  const feed = receiverFeedOver(first.near);
  const unknown = feed.tell(retire(1));
  await settled();
  first.sockets[0].destroy();
  await assert.rejects(unknown, code("link/closed"));
  await assert.rejects(feed.tell(retire(1)), code("link/closed"));
  const again = receiverFeedOver(fed(receiver).near).tell(retire(1));
  await settled();
  receiver.answers[1]?.resolve();
  await again;
  assert.deepEqual(receiver.told, [retire(1), retire(1)]);
});

it("keeps what is under way within its window, and the rest in order behind it", async () => {
  const receiver = new Receiver();
  const feed = receiverFeedOver(fed(receiver).near);
  const all = Array.from({ length: feedWindow + 10 }, (_, at) => retire(at + 1));
  const telling = all.map((item) => feed.tell(item));
  await settled(200);
  assert.equal(receiver.told.length, feedWindow);
  receiver.answers[0]?.resolve();
  await settled();
  assert.equal(receiver.told.length, feedWindow + 1, "one answer makes room for one more");
  while (receiver.answers.length < all.length) {
    for (const { resolve } of receiver.answers) resolve();
    await settled();
  }
  for (const { resolve } of receiver.answers) resolve();
  await Promise.all(telling);
  assert.deepEqual(receiver.told, all);
});

const malformed: readonly (readonly [what: string, bytes: Buffer])[] = [
  ["no JSON", Buffer.from("{]\n")],
  ["an unknown kind", encodeLine({ seq: 1, position: 1, entry: { kind: "run" } })],
  ["an unknown member", encodeLine({ seq: 1, position: 1, entry: { kind: "keys", bundle: "b", more: 1 } })],
  ["no position", encodeLine({ seq: 1, entry: { kind: "keys", bundle: "b" } })],
  ["a position of zero", encodeLine({ seq: 1, position: 0, entry: { kind: "keys", bundle: "b" } })],
  ["a line without an end", Buffer.alloc(200_000, 0x20)],
];

for (const [what, bytes] of malformed) {
  it(`a feed that says ${what} ends, and nothing of it is applied`, async () => {
    const receiver = new Receiver();
    const { open } = fed(receiver);
    const listener = open('{"feed":1}');
    listener.stream.send(bytes);
    await settled(200);
    assert.match(listener.told.at(-1) ?? "", /^reset /);
    assert.deepEqual(receiver.told, []);
  });
}

it("an acknowledgement of nothing ends the feed, and everything under way is unknown", async () => {
  const { near } = linked({
    onOpen: (stream) => {
      stream.send(encodeLine({ ack: 9 }));
      return { onData: () => undefined, onEnd: () => undefined, onReset: () => undefined };
    },
  });
  await assert.rejects(receiverFeedOver(near).tell(retire(1)), code("link/closed"));
});

it("reads messages however their bytes are cut", () => {
  const bytes = Buffer.concat([encodeLine({ a: "ü" }), encodeLine([2n]), encodeLine(3)]);
  for (let size = 1; size <= bytes.length; size += 1) {
    const reader = new LineReader(100);
    const read: unknown[] = [];
    for (let at = 0; at < bytes.length; at += size) read.push(...reader.push(bytes.subarray(at, at + size)));
    assert.deepEqual(read, [{ a: "ü" }, [2n], 3], `cut every ${size}`);
  }
});
