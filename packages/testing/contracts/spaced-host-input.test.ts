// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { faultLanded } from "../src/fault-landed.ts";
import { enveloped, HostRig } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const start = "process.Process/Start";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A rig with a program that runs until it is killed. */
async function withPrograms(): Promise<HostRig> {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("idle", () => undefined);
  return rig;
}

it("input goes to the process in order, and waits for one that does not read", async () => {
  const rig = await withPrograms();
  rig.guest.programs.set("deaf", (process) => {
    process.onInput = () => false;
  });
  await rig.stream(start, { process: { cmd: "deaf" } });
  const process = { pid: rig.guest.started[0]?.pid };
  const input = (bytes: number) =>
    rig.rpc("process.Process/SendInput", {
      process,
      input: { stdin: Buffer.alloc(bytes, "i").toString("base64") },
    });
  assert.deepEqual((await input(200_000)).json(), {});
  const second = await input(200_000);
  const third = await input(10);
  assert.deepEqual([second.status, third.status], [0, 0]);
  const got = () => rig.guest.started[0]?.inputs.reduce((sum, { length }) => sum + length, 0);
  assert.equal(got(), 262_144, "the guest's window is not exceeded");
  third.stream.reset("left");
  await settle();
  rig.guest.started[0]?.takeInput(262_144);
  await settle();
  assert.equal(second.status, 200);
  assert.equal(got(), 400_000, "what a caller that left had asked for is not written");
  rig.close();
});

it("refuses input of the wrong kind, and for processes that are not there", async () => {
  const rig = await withPrograms();
  await rig.stream(start, { process: { cmd: "idle" }, stdin: false });
  await rig.stream(start, { process: { cmd: "idle" }, pty: { size: { cols: 80, rows: 24 } } });
  const [plain, terminal] = rig.guest.started.map(({ pid }) => ({ pid }));
  const cases: [string, unknown, string][] = [
    ["SendInput", { process: plain, input: { stdin: "eA==" } }, "internal"],
    ["SendInput", { process: plain, input: { pty: "eA==" } }, "internal"],
    ["SendInput", { process: terminal, input: { stdin: "eA==" } }, "internal"],
    ["SendInput", { process: { pid: 999 }, input: { stdin: "eA==" } }, "not_found"],
    ["SendInput", { process: terminal }, "invalid_argument"],
    ["CloseStdin", { process: terminal }, "internal"],
    ["CloseStdin", { process: plain }, "internal"],
    ["Update", { process: plain, pty: { size: { cols: 1, rows: 1 } } }, "internal"],
    ["SendSignal", { process: { tag: "none" }, signal: "SIGNAL_SIGKILL" }, "not_found"],
    ["SendSignal", { signal: "SIGNAL_SIGKILL" }, "invalid_argument"],
  ];
  for (const [method, message, code] of cases) {
    const answer = await rig.rpc(`process.Process/${method}`, message);
    assert.equal((answer.json() as { code: string }).code, code, `${method} ${JSON.stringify(message)}`);
  }
  rig.close();
});

it("serves a terminal: its size, its output, its input, a new size", async () => {
  const rig = await withPrograms();
  rig.guest.programs.set("sh", (process) => {
    process.onInput = (chunk) => {
      void process.output("pty", chunk);
      return true;
    };
  });
  const answer = await rig.stream(start, { process: { cmd: "sh" }, pty: { size: { cols: 100, rows: 30 } } });
  const process = rig.guest.started[0];
  assert.deepEqual(process?.spawn.pty, { cols: 100, rows: 30 });
  await rig.rpc("process.Process/SendInput", {
    process: { pid: process?.pid },
    input: { pty: base64("ls\r") },
  });
  assert.deepEqual(answer.messages()[1], { event: { data: { pty: base64("ls\r") } } });
  await rig.rpc("process.Process/Update", {
    process: { pid: process?.pid },
    pty: { size: { cols: 7, rows: 9 } },
  });
  assert.deepEqual(process?.size, { cols: 7, rows: 9 });
  rig.close();
});

it("incident 11: a terminal that nobody uses for five hours is shown to live, and is still there", async () => {
  const rig = await withPrograms();
  rig.guest.programs.set("sh", (process) => {
    process.onInput = (chunk) => {
      void process.output("pty", chunk);
      return true;
    };
  });
  const answer = await rig.stream(
    start,
    { process: { cmd: "sh" }, pty: { size: { cols: 80, rows: 24 } } },
    { "keepalive-ping-interval": "50" },
  );
  const sinceMs = rig.clock.monotonicMs();
  await rig.clock.advance(5 * 3_600_000);
  const idleMs = rig.clock.monotonicMs() - sinceMs;
  faultLanded(
    "nothing was typed or shown for five hours",
    answer.messages().length > 362 ? 0 : idleMs / 18e6,
  );
  const lives = answer.messages().filter((message) => JSON.stringify(message).includes("keepalive"));
  assert.equal(lives.length, 360);
  const process = { pid: rig.guest.started[0]?.pid };
  await rig.rpc("process.Process/SendInput", { process, input: { pty: base64("x") } });
  assert.deepEqual(answer.messages().at(-1), { event: { data: { pty: base64("x") } } });
  assert.equal(answer.reset, undefined);
  rig.close();
});

it("streams input in one call", async () => {
  const rig = await withPrograms();
  await rig.stream(start, { process: { cmd: "idle" } });
  const process = { pid: rig.guest.started[0]?.pid };
  const events = [{ start: { process } }, { data: { input: { stdin: base64("a") } } }, { keepalive: {} }];
  const call = rig.open("POST", "/process.Process/StreamInput", {
    headers: { "content-type": "application/connect+json" },
  });
  for (const event of [...events, { data: { input: { stdin: base64("b") } } }]) {
    const framed = enveloped(JSON.stringify(event));
    call.stream.send(framed.subarray(0, 3));
    await settle();
    call.stream.send(framed.subarray(3));
  }
  call.stream.end();
  await settle();
  assert.equal(Buffer.concat(rig.guest.started[0]?.inputs ?? []).toString(), "ab");
  assert.deepEqual(call.messages(), [{}, { end: {} }]);
  rig.close();
});
