// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { continuationWaitMs } from "@space/wire";
import { ContinuingCaller, flat } from "../src/continuing-caller.ts";
import { enveloped, HostRig, type RigAnswer } from "../src/host-rig.ts";
import { SeededRandom } from "../src/seeded-random.ts";
import { settle } from "../src/virtual-clock.ts";

// R-22 at the bridge, the other direction: what a caller writes reaches the process once and in order.

const sendInput = "process.Process/SendInput";
const base64 = (text: string): string => Buffer.from(text).toString("base64");
let keys = 0;
const newKey = (): string => `adm_${(keys++).toString(32).padStart(26, "q")}`;

async function withProcess(): Promise<{ rig: HostRig; process: { pid: number }; typed: () => string }> {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("run", () => undefined);
  await rig.stream("process.Process/Start", { process: { cmd: "run" } });
  const started = rig.guest.started[0];
  assert.ok(started);
  const typed = (): string => Buffer.concat(started.inputs).toString();
  return { rig, process: { pid: started.pid }, typed };
}

const type = (
  rig: HostRig,
  process: { pid: number },
  text: string,
  headers: Record<string, string>,
): Promise<RigAnswer> => rig.rpc(sendInput, { process, input: { stdin: base64(text) } }, headers);

it("R-22: an input that is presented again is written once, and answered each time", async () => {
  const { rig, process, typed } = await withProcess();
  const key = newKey();
  for (const position of [{ key }, { key, answerOffset: 0 }, { key, answerOffset: 0 }]) {
    assert.deepEqual((await type(rig, process, "a", flat(position))).json(), {});
  }
  assert.equal(typed(), "a");
  await type(rig, process, "a", flat({ key: newKey() }));
  await type(rig, process, "a", {});
  assert.equal(typed(), "aaa", "another input with the same bytes is another input");
  const never = newKey();
  await type(rig, process, "b", flat({ key: never, answerOffset: 0 }));
  assert.equal(typed(), "aaab", "one that never arrived is written now");
  rig.close();
});

it("R-22: an input whose connection is cut while it waits is written once; one that was given up is not", async () => {
  const { rig, process, typed } = await withProcess();
  const started = rig.guest.started[0];
  assert.ok(started);
  started.onInput = () => false; // it does not read
  const body = (text: string): string => JSON.stringify({ process, input: { stdin: base64(text) } });
  const open = (text: string, headers: Record<string, string>): RigAnswer =>
    rig.open("POST", `/${sendInput}`, {
      headers: { "content-type": "application/json", ...headers },
      body: body(text),
    });
  open("f".repeat(262_144), {});
  await settle();
  const key = newKey();
  const calls = [open("held", {}), open("cut", flat({ key })), open("left", flat({ key: newKey() }))];
  await settle();
  calls[1]?.stream.reset("transport");
  calls[2]?.stream.reset("cancelled");
  const again = open("cut", flat({ key, answerOffset: 0 }));
  await settle();
  assert.equal(again.status, 0, "it waits as the first presentation did");
  started.onInput = () => true;
  started.takeInput(262_144);
  await settle();
  assert.deepEqual([again.status, again.json()], [200, {}]);
  assert.equal(typed().slice(262_144), "heldcut");
  rig.close();
});

it("R-22: a stream of input goes on at any byte: what was taken is dropped, what was not is taken", async () => {
  const { rig, process, typed } = await withProcess();
  const random = new SeededRandom("input");
  const below = (limit: number): number => Buffer.from(random.bytes(4)).readUInt32LE() % limit;
  let expected = "";
  const events: unknown[] = [{ start: { process } }];
  for (let at = 0; at < 300; at += 1) {
    const text = `${at}:${"i".repeat(below(200))};`;
    expected += text;
    events.push({ data: { input: { stdin: base64(text) } } });
  }
  const body = Buffer.concat(events.map((event) => enveloped(JSON.stringify(event))));
  const caller = await ContinuingCaller.open(rig, "process.Process/StreamInput", undefined);
  let sent = 0;
  let cuts = 0;
  let repeated = 0;
  while (sent < body.length) {
    const next = Math.min(body.length, sent + 1 + below(700));
    caller.current.stream.send(body.subarray(sent, next));
    sent = next;
    if (below(2) === 0) await settle(below(6));
    if (below(12) !== 0) continue;
    cuts += 1;
    caller.current.stream.reset("transport");
    await settle(below(3));
    let from = Math.max(0, sent - below(2_000));
    await caller.goOn({ answerOffset: 0, bodyOffset: from });
    // What had not been taken when it was cut may lie before `from`: a gap, which is refused.
    while (caller.current.streamLost) {
      from = Math.max(0, from - 500);
      await caller.goOn({ answerOffset: 0, bodyOffset: from });
    }
    repeated += sent - from;
    sent = from;
  }
  caller.current.stream.end();
  await settle();
  assert.ok(typed() === expected, `${typed().length} of ${expected.length} bytes`);
  assert.deepEqual(caller.messages(), [{}, { end: {} }]);
  assert.ok(cuts > 10 && repeated > 5_000, `${cuts} cuts, ${repeated} bytes sent twice`);
  rig.close();
});

it("R-22: a gap in a stream of input is refused, and an abandoned one ends", async () => {
  const { rig, process, typed } = await withProcess();
  const caller = await ContinuingCaller.open(rig, "process.Process/StreamInput", undefined);
  const event = enveloped(JSON.stringify({ start: { process } }));
  caller.current.stream.send(event);
  await settle();
  caller.current.stream.reset("transport");
  await settle();
  assert.ok((await caller.goOn({ answerOffset: 0, bodyOffset: event.length + 1 })).streamLost);
  await caller.goOn({ answerOffset: 0, bodyOffset: event.length });
  caller.current.stream.send(enveloped(JSON.stringify({ data: { input: { stdin: base64("x") } } })));
  await settle();
  assert.equal(typed(), "x");
  caller.current.stream.reset("transport");
  await rig.clock.advance(2 * continuationWaitMs);
  assert.ok((await caller.goOn({ answerOffset: 0, bodyOffset: 0 })).streamLost);
  rig.close();
});
