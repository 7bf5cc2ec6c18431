// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// streams that go on when their sandbox is paused, moved or re-adopted, as a caller sees them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { enveloped, messagesIn, positionOf } from "../src/fake-named-streams.ts";
import { fakeIdentity } from "../src/fake-route-source.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { GatewayRig } from "../src/gateway-rig.ts";
import { begun, connect, pause, runsAs, type StreamScene, start, watch } from "../src/stream-scene.ts";

describe("R-22: an eligible stream goes on", () => {
  for (const path of [start, connect, watch]) {
    test(`${path}: after its epoch ended, under a new capability and admission, each byte once and in order`, async () => {
      await using scene = await begun(path);
      const { rig, streams, caller, key, current } = scene;
      const first = current();
      streams.send(key, enveloped("one"));
      const two = enveloped("two");
      streams.send(key, two.subarray(0, 6)); // the cut falls into a message
      await rig.settle();
      runsAs(scene, 2n);
      first.stream.reset("epoch-ended");
      await rig.clock.advance(1000);
      await rig.settle();
      const next = current();
      assert.notEqual(next, first);
      assert.equal(next.head.path, path === start ? connect : path);
      assert.deepEqual(positionOf(next), { key, answerOffset: enveloped("one").length + 6 });
      assert.notEqual(next.head.admission, first.head.admission);
      assert.match(next.head.capability, / 2$/, "R-13: the capability names the execution that serves it");
      assert.deepEqual([next.bodyBytes, next.bodyEnded], [0, true]);
      streams.send(key, two.subarray(6));
      streams.send(key, enveloped("{}", 2));
      next.stream.end();
      await rig.settle();
      assert.deepEqual(caller.bytes, streams.bytesOf(key));
      assert.equal(caller.end, "ended");
      assert.equal(rig.gateway.counts.continued, 1);
      assert.equal(rig.gateway.underWay, 0);
    });
  }

  test("each cause of a cut that is the path's is one: the worker ends, the link breaks, the bridge's link breaks", async () => {
    for (const cut of [
      (scene: StreamScene) => scene.current().stream.reset("closing"),
      (scene: StreamScene) => scene.current().stream.reset("lease-ended"),
      (scene: StreamScene) => scene.current().stream.reset("transport"),
      (scene: StreamScene) => scene.rig.worker.links.at(-1)?.destroy(undefined),
    ]) {
      await using scene = await begun();
      scene.streams.send(scene.key, enveloped("one"));
      await scene.rig.settle();
      cut(scene);
      await scene.rig.clock.advance(2000);
      await scene.rig.settle();
      scene.streams.send(scene.key, enveloped("two"));
      await scene.rig.settle();
      assert.deepEqual(scene.caller.bytes, scene.streams.bytesOf(scene.key));
      assert.equal(scene.caller.end, "open");
    }
  });

  test("fifty times in a row", async () => {
    await using scene = await begun();
    for (let round = 2n; round < 52n; round += 1n) {
      scene.streams.send(scene.key, enveloped(`before ${round}`));
      await scene.rig.settle();
      runsAs(scene, round);
      scene.current().stream.reset("epoch-ended");
      await scene.rig.clock.advance(2000);
      await scene.rig.settle();
    }
    assert.deepEqual(scene.caller.bytes, scene.streams.bytesOf(scene.key));
    assert.equal(scene.rig.gateway.counts.continued, 50);
    assert.equal(scene.caller.end, "open");
  });

  test("while the sandbox is paused it is held, shown to live between messages, and goes on when it runs", async () => {
    await using scene = await begun();
    const { rig, streams, caller, key } = scene;
    streams.send(key, enveloped("one"));
    await rig.settle();
    pause(scene);
    await rig.clock.advance(65_000);
    assert.equal(caller.end, "open");
    const held = messagesIn(caller.bytes).map(({ text }) => text);
    const keepalive = '{"event":{"keepalive":{}}}';
    assert.deepEqual(held, ["one", keepalive, keepalive, keepalive]);
    runsAs(scene, 2n);
    await rig.clock.advance(2000);
    streams.send(key, enveloped("two"));
    await rig.settle();
    assert.deepEqual(
      messagesIn(caller.bytes).map(({ text }) => text),
      [...held, "two"],
    );
    assert.deepEqual(
      positionOf(scene.current()).answerOffset,
      enveloped("one").length,
      "its own are not counted",
    );
  });

  test("in the middle of a message nothing is put in", async () => {
    await using scene = await begun();
    scene.streams.send(scene.key, enveloped("half of it").subarray(0, 8));
    await scene.rig.settle();
    pause(scene);
    await scene.rig.clock.advance(65_000);
    assert.equal(scene.caller.bytes.length, 8);
    assert.equal(scene.caller.end, "open");
  });

  test("a failed pause: the same execution admits it again, in its new epoch", async () => {
    await using scene = await begun();
    pause(scene);
    await scene.rig.clock.advance(5000);
    runsAs(scene, 1n);
    await scene.rig.clock.advance(2000);
    scene.streams.send(scene.key, enveloped("one"));
    await scene.rig.settle();
    assert.deepEqual(scene.caller.bytes, scene.streams.bytesOf(scene.key));
  });

  test("a control plane that cannot be asked and a worker that cannot be dialled are waited for", async () => {
    await using scene = await begun();
    const { rig } = scene;
    const there = rig.dial;
    rig.dial = () => Promise.reject(new Error("refused"));
    rig.routes.answer = () => Promise.reject(new Error("away"));
    rig.worker.links.at(-1)?.destroy(undefined);
    await rig.clock.advance(20_000);
    assert.equal(scene.caller.end, "open");
    rig.dial = there;
    rig.routes.answer = undefined;
    await rig.clock.advance(5000);
    scene.streams.send(scene.key, enveloped("one"));
    await rig.settle();
    assert.deepEqual(scene.caller.bytes.subarray(-8), enveloped("one"));
  });
});

describe("R-22: a stream that cannot go on ends, typed and in time", () => {
  test("incident 9: held too long: unavailable, in the message that ends a stream", async () => {
    await using scene = await begun();
    scene.streams.send(scene.key, enveloped("one"));
    await scene.rig.settle();
    const asked = scene.rig.routes.requests.length;
    pause(scene);
    await scene.rig.clock.advance(scene.rig.gateway.limits.heldStreamMs - 5000);
    faultLanded("it was cut, and tried to go on", scene.rig.routes.requests.length - asked);
    assert.equal(scene.caller.end, "open");
    await scene.rig.clock.advance(6000);
    await scene.rig.settle();
    assert.equal(scene.caller.end, "ended");
    const last = messagesIn(scene.caller.bytes).at(-1);
    assert.equal(last?.flags, 2);
    assert.match(last?.text ?? "", /"code":"unavailable"/);
    assert.equal(scene.rig.gateway.underWay, 0);
  });

  test("gone with a files-only resume: aborted", async () => {
    await using scene = await begun();
    scene.streams.send(scene.key, enveloped("one"));
    await scene.rig.settle();
    scene.streams.forget();
    runsAs(scene, 2n);
    scene.rig.worker.operations[0]?.stream.reset("epoch-ended");
    await scene.rig.clock.advance(1000);
    await scene.rig.settle();
    const last = messagesIn(scene.caller.bytes).at(-1);
    assert.deepEqual([scene.caller.end, last?.flags], ["ended", 2]);
    assert.match(last?.text ?? "", /"code":"aborted"/);
  });

  test("in the middle of a message it breaks off, since nothing may be put in there", async () => {
    await using scene = await begun();
    scene.streams.send(scene.key, enveloped("half of it").subarray(0, 8));
    await scene.rig.settle();
    scene.streams.forget();
    runsAs(scene, 2n);
    scene.rig.worker.operations[0]?.stream.reset("epoch-ended");
    await scene.rig.clock.advance(1000);
    await scene.rig.settle();
    assert.deepEqual([scene.caller.end, scene.caller.bytes.length], ["broken", 8]);
  });

  test("killed, or its caller refused: it breaks off at once, as clients know it", async () => {
    for (const answer of [{ kind: "not-found" }, { kind: "unauthenticated", problem: "wrong" }] as const) {
      await using scene = await begun();
      scene.rig.routes.answer = () => answer;
      scene.rig.worker.serve = (operation) => operation.refreshRoute(fakeIdentity(1n));
      scene.current().stream.reset("epoch-ended");
      await scene.rig.clock.advance(1000);
      await scene.rig.settle();
      assert.equal(scene.caller.end, "broken");
    }
  });

  test("a worker's deny, the execution's own end, and a broken rule end it too", async () => {
    for (const word of ["execution-gone", "protocol", "cancelled", "made-up"]) {
      await using scene = await begun();
      scene.current().stream.reset(word);
      await scene.rig.settle();
      assert.equal(scene.caller.end, "broken", word);
      assert.equal(scene.rig.worker.operations.length, 1);
    }
    await using scene = await begun();
    scene.rig.worker.serve = (operation) => operation.deny();
    scene.current().stream.reset("epoch-ended");
    await scene.rig.clock.advance(1000);
    await scene.rig.settle();
    assert.equal(scene.caller.end, "broken");
  });

  test("one that is cut again and again without a byte is tried at most once a second, and not for ever", async () => {
    await using scene = await begun();
    const { rig, streams } = scene;
    rig.worker.serve = (operation) => {
      streams.serve(operation);
      operation.stream.reset("transport");
    };
    scene.current().stream.reset("transport");
    await rig.clock.advance(60_000);
    assert.ok(rig.worker.operations.length < 75, `${rig.worker.operations.length} tries in a minute`);
    await rig.clock.advance(rig.gateway.limits.heldStreamMs);
    await rig.settle();
    assert.equal(scene.caller.end, "ended");
    assert.match(messagesIn(scene.caller.bytes).at(-1)?.text ?? "", /"code":"unavailable"/);
  });

  test("the end of the stream that had passed is its end, also when the connection broke before its last frame", async () => {
    await using scene = await begun();
    scene.streams.send(scene.key, enveloped("{}", 2));
    await scene.rig.settle();
    scene.current().stream.reset("epoch-ended");
    await scene.rig.settle();
    assert.equal(scene.caller.end, "ended");
    assert.equal(scene.rig.worker.operations.length, 1);
  });
});

describe("R-22: what is not eligible is never continued", () => {
  test("a download, a port's answer and an answer of known length break off", async () => {
    await using rig = await GatewayRig.start();
    for (const [path, headers, answer] of [
      ["/files?path=a", rig.routing(), []],
      ["/", rig.routing(3000), ["content-type", "application/connect+json"]],
    ] as const) {
      rig.worker.serve = (operation) => {
        operation.admit(200, answer);
        operation.stream.send(enveloped("half"));
        operation.stream.reset("epoch-ended");
      };
      const before = rig.worker.operations.length;
      await assert.rejects(rig.fetch(path, { headers }));
      await rig.clock.advance(2000);
      assert.equal(rig.worker.operations.length, before + 1);
    }
    rig.worker.serve = (operation) => {
      operation.admit(200, ["content-type", "application/json", "content-length", "100"]);
      operation.stream.send(Buffer.from("{"));
      operation.stream.reset("epoch-ended");
    };
    await assert.rejects(rig.fetch(start, { method: "POST", body: "{}" }));
  });
});
