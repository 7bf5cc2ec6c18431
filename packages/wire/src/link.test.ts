// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { it } from "node:test";
import { isSpaceError, SpaceError } from "@space/model";
import { frameType, headLimitBytes } from "./frame.ts";
import { FrameLink, linkBacklogLimitBytes } from "./link.ts";
import { Listener, linked, rawPeer, settled } from "./linked.fixture.ts";
import { streamWindowBytes } from "./stream-window.ts";

const closed = (error: unknown): boolean => isSpaceError(error, "link/closed");

it("gives both sides their own ids, and each its own streams", async () => {
  const nears: Listener[] = [];
  const { near, far, accepted, open } = linked(
    {},
    {
      onOpen: () => {
        const listener = new Listener();
        nears.push(listener);
        return listener;
      },
    },
  );
  open("a");
  open("b");
  far.open("c", new Listener(), false);
  await settled();
  assert.deepEqual(
    accepted.map(({ told }) => told),
    [["open a"], ["open b"]],
  );
  assert.equal(nears.length, 1);
  assert.deepEqual([near.size, far.size], [3, 3]);
});

it("tells the acceptor whether anything follows the head", async () => {
  const ends: boolean[] = [];
  const { open } = linked({
    onOpen: (_stream, _head, ended) => {
      ends.push(ended);
      return new Listener();
    },
  });
  open("a", true);
  open("b", false);
  await settled();
  assert.deepEqual(ends, [true, false]);
});

it("R-20: resets every stream when the socket ends, tells the owner once, and does not come back", async () => {
  let closes = 0;
  const { near, sockets, open } = linked({}, { onClose: () => (closes += 1) });
  const [a, b] = [open(), open()];
  await settled();
  sockets[1].end();
  await settled();
  near.destroy(undefined);
  assert.deepEqual([a.told, b.told], [["reset link/closed"], ["reset link/closed"]]);
  assert.deepEqual([closes, near.closed, near.size], [1, true, 0]);
});

it("passes the socket's error to its owner", async () => {
  const causes: unknown[] = [];
  const { sockets } = linked({}, { onClose: (cause) => causes.push(cause) });
  const failure = new Error("broken wire");
  sockets[0].destroy(failure);
  await settled();
  assert.deepEqual(causes, [failure]);
});

it("ends at once over a socket that is already gone", async () => {
  const [socket] = duplexPair();
  socket.destroy();
  await settled();
  const link = new FrameLink(socket, { dialled: true });
  await settled();
  assert.ok(link.closed);
});

it("tells the opener on a link that is gone, in the next turn", async () => {
  const { near, open } = linked();
  near.destroy(undefined);
  const late = open();
  assert.deepEqual(late.told, []);
  await settled();
  assert.deepEqual(late.told, ["reset link/closed"]);
});

it("opens no more streams than its limit, and what is sent on the one too many reaches nobody", async () => {
  const { near, accepted, open } = linked({}, { maxStreams: 1 });
  const first = open("first");
  const second = open("second");
  assert.ok(second.stream.send(Buffer.from("astray")));
  await settled();
  assert.deepEqual(second.told, ["reset link/too-many-streams"]);
  first.stream.reset("done");
  open("third").stream.send(Buffer.from("x"));
  await settled();
  assert.deepEqual(
    accepted.map(({ told }) => told),
    [
      ["open first", "reset done"],
      ["open third", "data x"],
    ],
  );
  assert.equal(near.size, 1);
});

it("accepts no more streams than its limit", async () => {
  const { far, open } = linked({ maxStreams: 1 });
  const [first, second] = [open(), open()];
  await settled();
  assert.deepEqual([first.told, second.told], [[], ["reset link/too-many-streams"]]);
  assert.equal(far.size, 1);
});

it("refuses a head above the limit on this side, so that it does not end the link", async () => {
  const { accepted, open } = linked();
  const [long, fit] = [open("x".repeat(headLimitBytes + 1)), open("y".repeat(headLimitBytes))];
  await settled();
  assert.deepEqual([long.told, fit.told], [["reset link/head-too-large"], []]);
  assert.equal(accepted.length, 1);
});

it("answers a ping after everything sent before it", async () => {
  const { near, accepted, open } = linked();
  const { stream } = open();
  stream.send(Buffer.from("a"));
  await near.ping();
  assert.deepEqual(accepted[0]?.told, ["open ", "data a"]);
});

it("rejects pings when the link ends or has ended", async () => {
  const { near } = linked();
  const pending = near.ping();
  near.destroy(undefined);
  await assert.rejects(pending, closed);
  await assert.rejects(near.ping(), closed);
});

it("ignores a pong that nobody asked for", async () => {
  const peer = rawPeer();
  peer.send([frameType.pong, 0]);
  await settled();
  assert.equal(peer.link.closed, false);
});

it("a handler that throws costs its own stream only, and is reported", async () => {
  const { near, far, accepted, bugs, open } = linked();
  const [bad, good] = [open("bad"), open("good")];
  await settled();
  const bug = new Error("bug");
  Object.assign(accepted[0] ?? {}, {
    onData: () => {
      throw bug;
    },
  });
  bad.stream.send(Buffer.from("a"));
  good.stream.send(Buffer.from("b"));
  await settled();
  assert.deepEqual(bugs, [bug]);
  assert.deepEqual(bad.told, ["reset internal/bug"]);
  assert.deepEqual(accepted[0]?.told, ["open bad", "reset internal/bug"]);
  assert.deepEqual(accepted[1]?.told, ["open good", "data b"]);
  assert.deepEqual([near.closed, far.closed, far.size], [false, false, 1]);
});

it("what the acceptor throws for a head resets that stream, with its code", async () => {
  const { far, bugs, open } = linked({
    onOpen: (_stream, head) => {
      if (head.toString() === "bug") throw new TypeError("bug");
      throw new SpaceError("input/invalid", { field: "head", problem: "bad" });
    },
  });
  const [first, second] = [open("bad"), open("bug")];
  await settled();
  assert.deepEqual([first.told, second.told], [["reset input/invalid"], ["reset internal/bug"]]);
  assert.deepEqual([bugs.length, far.size, far.closed], [2, 0, false]);
});

it("handlers that throw at the end keep nobody else from being told", async () => {
  let closes = 0;
  const { near, bugs, open } = linked(
    {},
    {
      onClose: () => {
        closes += 1;
        throw new Error("close");
      },
    },
  );
  const [bad, good] = [open(), open()];
  bad.onReset = () => {
    throw new Error("reset");
  };
  const ping = near.ping();
  near.destroy(undefined);
  await assert.rejects(ping, closed);
  assert.deepEqual(good.told, ["reset link/closed"]);
  assert.deepEqual([closes, bugs.length], [1, 2]);
});

it("warns the process of a bug when nobody asked to be told", async (test) => {
  const warn = test.mock.method(process, "emitWarning", () => undefined);
  const fail = (thrown: unknown): never => {
    throw thrown;
  };
  const bug = new Error("first");
  for (const thrown of [bug, "second"]) {
    const [near, far] = duplexPair();
    new FrameLink(far, { dialled: false, onOpen: () => fail(thrown) });
    new FrameLink(near, { dialled: true }).open("", new Listener(), false);
  }
  await settled();
  assert.deepEqual(
    warn.mock.calls.map((call) => call.arguments[0]),
    [bug, "second"],
  );
});

it("does nothing more for frames that came with the one that ended it", async () => {
  const opened: string[] = [];
  const peer = rawPeer({
    onOpen: (_stream, head) => {
      opened.push(head.toString());
      peer.link.destroy(undefined);
      return new Listener();
    },
  });
  peer.send([frameType.open, 1, "a"], [frameType.open, 3, "b"], [200, 1]);
  await settled();
  assert.deepEqual([opened, peer.closes], [["a"], [undefined]]);
});

it("tells an acceptor of the link's end also when it came before he had set his handlers", async () => {
  const listener = new Listener();
  const peer = rawPeer({
    onOpen: () => {
      peer.link.destroy(undefined);
      return listener;
    },
  });
  peer.send([frameType.openEnd, 1]);
  await settled();
  assert.deepEqual(listener.told, ["reset link/closed"]);
});

it("lets a late frame of a stream that is over pass", async () => {
  const peer = rawPeer();
  peer.send([frameType.open, 1], [frameType.reset, 1, "x"], [frameType.data, 1, "late"], [frameType.end, 1]);
  await settled();
  assert.deepEqual(peer.accepted[0]?.told, ["reset x"]);
  assert.equal(peer.link.closed, false);
});

it("holds streams back while the socket is behind, and lets them go on when it is not", async () => {
  const { near, sockets, open } = linked();
  sockets[1].pause();
  const streams = Array.from({ length: 10 }, () => open());
  const chunk = Buffer.alloc(streamWindowBytes - 1);
  const room = streams.map(({ stream }) => stream.send(chunk));
  assert.deepEqual([room.at(0), room.at(-1)], [true, false]);
  assert.ok(near.congested);
  await settled();
  assert.ok(near.congested);
  streams[9]?.stream.reset("given up");
  sockets[1].resume();
  await settled(200);
  assert.equal(near.congested, false);
  const drained = streams.map(({ told }) => told.includes("drain"));
  assert.deepEqual(
    drained,
    room.map((hadRoom, at) => !hadRoom && at !== 9),
  );
});

it("ends when the other side lets too much pile up", async () => {
  const causes: unknown[] = [];
  const { near, sockets, open } = linked({}, { onClose: (cause) => causes.push(cause) });
  sockets[1].pause();
  const chunk = Buffer.alloc(streamWindowBytes);
  const opened = open();
  for (let sent = 0; sent <= linkBacklogLimitBytes; sent += chunk.length) open().stream.send(chunk);
  await settled();
  assert.ok(near.closed && isSpaceError(causes[0], "link/protocol"));
  assert.deepEqual(opened.told, ["reset link/closed"]);
});
