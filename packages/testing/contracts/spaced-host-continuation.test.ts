// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { newActivationId, Secret } from "@space/model";
import { continuationWaitMs, retainedBytes } from "@space/wire";
import { ContinuingCaller } from "../src/continuing-caller.ts";
import type { FakeProcess } from "../src/fake-process.ts";
import { HostRig, type RigAnswer } from "../src/host-rig.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { settle } from "../src/virtual-clock.ts";

// R-22 at the bridge: an answer that was cut goes on where the gateway stands, each byte once and in order.

const start = "process.Process/Start";

async function withProgram(): Promise<{ rig: HostRig; process: () => FakeProcess }> {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("run", () => undefined);
  const process = (): FakeProcess => {
    const found = rig.guest.started.at(-1);
    assert.ok(found);
    return found;
  };
  return { rig, process };
}

const run = (rig: HostRig): Promise<ContinuingCaller> =>
  ContinuingCaller.open(rig, start, { process: { cmd: "run" } });

/** All output in the messages, in order. */
function outputOf(messages: readonly unknown[]): string {
  return (messages as { event?: { data?: Record<string, string> } }[])
    .flatMap(({ event }) => Object.values(event?.data ?? {}))
    .map((text) => Buffer.from(text, "base64").toString("latin1"))
    .join("");
}

function assertLost(answer: RigAnswer): void {
  assert.deepEqual([answer.status, answer.streamLost, answer.body.length], [503, true, 0]);
}

it("R-22: each byte once and in order, wherever an answer is cut and whatever was under way", async () => {
  const { rig, process } = await withProgram();
  const random = new SeededRandom("cuts");
  const below = (limit: number): number => Buffer.from(random.bytes(4)).readUInt32LE() % limit;
  const caller = await run(rig);
  let expected = "";
  let cuts = 0;
  let repeated = 0;
  for (let round = 0; round < 200; round += 1) {
    const text = `${round}:${"x".repeat(below(3000))}\n`;
    expected += text;
    void process().output(below(2) === 0 ? "stdout" : "stderr", text);
    if (below(3) === 0) await settle(below(4)); // so that some of it is anywhere between the two ends
    if (below(2) === 0) continue;
    cuts += 1;
    const received = caller.current.body.length;
    const kept = below(received + 1); // what came after the cut was decided on counts as never received
    caller.current.chunks = [caller.current.body.subarray(0, kept)];
    repeated += received - kept;
    caller.take();
    caller.current.stream.reset("transport");
    if (below(4) === 0) rig.dial();
    await settle(below(3));
    const answer = await caller.goOn();
    assert.equal(answer.status, 200);
  }
  process().exit(0);
  await settle();
  const messages = caller.messages();
  assert.equal(outputOf(messages), expected);
  assert.deepEqual(messages.slice(-2), [
    { event: { end: { exited: true, status: "exit status 0" } } },
    { end: {} },
  ]);
  assert.ok(caller.current.ended);
  assert.ok(cuts > 50 && repeated > 50_000, `${cuts} cuts, ${repeated} bytes sent twice`);
  rig.close();
});

it("R-22: output made while nobody carries the answer is kept, at least 1 MiB, and then the process waits", async () => {
  const { rig, process } = await withProgram();
  const caller = await run(rig);
  caller.take();
  caller.current.stream.reset("transport");
  await settle();
  const chunk = "y".repeat(32 * 1024);
  let written = 0;
  for (let more = true; more; ) {
    const accepted = process().output("stdout", chunk);
    written += chunk.length;
    more = await Promise.race([accepted.then(() => true), settle(8).then(() => false)]);
  }
  assert.ok(written >= 1024 * 1024, `${written} bytes kept`);
  assert.ok(written < 4 * 1024 * 1024, `${written} bytes kept`);
  await caller.goOn();
  process().exit(0);
  await settle();
  assert.equal(outputOf(caller.messages()).length, written);
  assert.ok(caller.current.ended);
  rig.close();
});

it("R-22: everything that both windows can hold is sent again", async () => {
  const { rig, process } = await withProgram();
  const caller = await run(rig);
  const { length: before } = caller.take();
  for (let sent = 0; sent < 2 * retainedBytes; sent += 48 * 1024) {
    void process().output("stdout", "z".repeat(36 * 1024)); // 48 KiB in base64
    await settle(4);
  }
  const received = caller.current.body;
  assert.ok(received.length >= retainedBytes);
  caller.current.chunks = [];
  caller.current.stream.reset("transport");
  await settle();
  const all = before + received.length;
  assertLost(await caller.goOn({ answerOffset: 0 }));
  const again = await caller.goOn({ answerOffset: all - retainedBytes });
  assert.ok(again.body.equals(received.subarray(-retainedBytes)));
  rig.close();
});

it("R-22: survives the worker daemon, and a pause on the same worker", async () => {
  const { rig, process } = await withProgram();
  const caller = await run(rig);
  void process().output("stdout", "one");
  await settle();
  caller.take();
  rig.dial(); // a new daemon
  void process().output("stdout", "two");
  await settle();
  assert.notEqual(caller.current.reset, undefined);
  await caller.goOn();
  await settle();
  caller.take();

  assert.equal(await rig.control.quiesce(rig.activationId, 1_000, false), true);
  caller.current.stream.reset("epoch-ended");
  await settle();
  await rig.clock.advance(10 * continuationWaitMs); // frozen: this time does not count
  const to = newActivationId(rig.random);
  const activationSecret = new Secret<Uint8Array>(rig.random.bytes(32));
  await rig.control.rekey({ from: rig.activationId, to, activationSecret });
  void process().output("stdout", "three");
  await settle();
  assert.equal((await caller.goOn()).status, 503, "the old activation is nobody");
  await caller.goOn({ activation: to });
  process().exit(0);
  await settle();
  assert.equal(outputOf(caller.messages()), "onetwothree");
  rig.close();
});

it("R-22: who gave up is not waited for, and who does not come back is waited for within bounds", async () => {
  const { rig, process } = await withProgram();
  const given = await run(rig);
  given.current.stream.reset("cancelled");
  await settle();
  assertLost(await given.goOn({ answerOffset: 0 }));
  const late = await run(rig);
  late.take();
  late.current.stream.reset("transport");
  await rig.clock.advance(continuationWaitMs - 1_000);
  await late.goOn();
  assert.equal(late.current.status, 200, "in time");
  late.take();
  late.current.stream.reset("transport");
  for (let at = 0; at < 100; at += 1) void process().output("stdout", "x".repeat(32 * 1024));
  await settle();
  const blocked = process().output("stdout", "blocked");
  await rig.clock.advance(2 * continuationWaitMs);
  await blocked; // the process goes on without a reader
  assertLost(await late.goOn());
  rig.close();
});

it("R-22: a name of nobody's, of another kind, or an offset that is not kept, is refused and never guessed at", async () => {
  const { rig } = await withProgram();
  const caller = await run(rig);
  caller.take();
  assertLost(await caller.goOn({ key: `adm_${"z".repeat(26)}` }));
  assertLost(await caller.goOn({ answerOffset: caller.body.length + 1 }));
  for (const path of ["/filesystem.Filesystem/WatchDir", "/process.Process/StreamInput"]) {
    const headers = { "content-type": "application/connect+json", "space-stream": caller.key };
    const answer = rig.open("POST", path, { headers: { ...headers, "space-offset": "0" }, body: "" });
    await settle();
    assertLost(answer);
  }
  const bad = rig.open("POST", `/${start}`, { headers: { "space-offset": "1" }, body: "" });
  await settle();
  assert.equal(bad.reset, "bad head");
  rig.close();
});

it("R-22: two never carry the same answer: the later one takes it over", async () => {
  const { rig, process } = await withProgram();
  const caller = await run(rig);
  const first = caller.current;
  caller.take();
  await caller.goOn();
  assert.equal(first.reset, "superseded");
  void process().output("stdout", "only here");
  await settle();
  assert.equal(first.body.length, 0);
  assert.equal(outputOf(caller.messages()), "only here");
  rig.close();
});

it("R-22: an answer that has ended can still be received", async () => {
  const { rig, process } = await withProgram();
  const caller = await run(rig);
  void process().output("stdout", "the last words");
  process().exit(3);
  await settle();
  assert.ok(caller.current.ended);
  caller.current.chunks = []; // lost on the way
  await caller.goOn();
  assert.equal(outputOf(caller.messages()), "the last words");
  assert.ok(caller.current.ended);
  await rig.clock.advance(2 * continuationWaitMs);
  assertLost(await caller.goOn());
  rig.close();
});

it("R-22, R-28: a start that is presented again under its name runs once", async () => {
  const { rig, process } = await withProgram();
  const caller = await run(rig);
  caller.current.chunks = [];
  caller.current.stream.reset("transport");
  void process().output("stdout", "once");
  await settle();
  const again = rig.open("POST", `/${start}`, {
    headers: { "content-type": "application/connect+json", "space-stream": caller.key, "space-offset": "0" },
    body: "",
  });
  await settle();
  assert.equal(rig.guest.started.length, 1);
  assert.equal(outputOf(again.messages()), "once");
  rig.close();
});

it("R-22: what one sandbox keeps is bounded, and none of it is lost without a word", async () => {
  const { rig } = await withProgram();
  const callers: ContinuingCaller[] = [];
  for (let at = 0; at < 60; at += 1) callers.push(await run(rig));
  const before = process.memoryUsage().arrayBuffers;
  for (const started of rig.guest.started) {
    for (let at = 0; at < 60; at += 1) void started.output("stdout", "m".repeat(32 * 1024));
  }
  await settle(400);
  const held = process.memoryUsage().arrayBuffers - before;
  const received = callers.reduce((sum, caller) => sum + caller.take().length, 0);
  assert.ok(received > 60 * 60 * 40 * 1024, `${received} bytes came`);
  let refused = 0;
  for (const caller of callers) {
    caller.current.stream.reset("transport");
    await settle(2);
    const behind = caller.body.length - 1024 * 1024;
    caller.body = caller.body.subarray(0, behind);
    const answer = await caller.goOn();
    if (answer.streamLost) refused += 1;
    else assert.equal(caller.take().length, 1024 * 1024);
  }
  assert.ok(refused > 0 && refused < 60, `${refused} were refused`);
  assert.ok(held < 400 * 1024 * 1024, `${held} bytes held`);
  rig.close();
});
