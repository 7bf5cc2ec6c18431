// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { FakeProcess } from "../src/fake-process.ts";
import { actingAs, enveloped, HostRig } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const start = "process.Process/Start";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A rig with programs: `idle` runs until it is killed, `echo` prints its argument and ends, `cat` copies its input. */
async function withPrograms(): Promise<HostRig> {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("idle", () => undefined);
  rig.guest.programs.set("echo", (process) => {
    void process.output("stdout", `${process.spawn.argv[1] ?? ""}\n`);
    process.exit(0);
  });
  rig.guest.programs.set("cat", (process) => {
    process.onInput = (chunk) => {
      void process.output("stdout", chunk);
      return true;
    };
    process.onInputEnd = () => process.exit(0);
  });
  return rig;
}

it("streams start, output and end, and then ends the stream", async () => {
  const rig = await withPrograms();
  const answer = await rig.stream(start, { process: { cmd: "echo", args: ["hi"] }, stdin: false });
  assert.equal(answer.status, 200);
  assert.equal(answer.header("content-type"), "application/connect+json");
  assert.deepEqual(answer.messages(), [
    { event: { start: { pid: rig.guest.started[0]?.pid } } },
    { event: { data: { stdout: base64("hi\n") } } },
    { event: { end: { exited: true, status: "exit status 0" } } },
    { end: {} },
  ]);
  assert.equal(answer.ended, true);
  rig.close();
});

it("says how a process ended: a code, or a signal", async () => {
  const rig = await withPrograms();
  const ends: [string, (process: FakeProcess) => void, unknown][] = [
    [
      "one",
      (process) => process.exit(1),
      { exitCode: 1, exited: true, status: "exit status 1", error: "exit status 1" },
    ],
    [
      "term",
      (process) => process.kill(15),
      { exitCode: -1, status: "signal: terminated", error: "signal: terminated" },
    ],
    [
      "segv",
      (process) => process.kill(11),
      { exitCode: -1, status: "signal: segmentation fault", error: "signal: segmentation fault" },
    ],
  ];
  for (const [cmd, program, end] of ends) {
    rig.guest.programs.set(cmd, program);
    assert.deepEqual((await rig.stream(start, { process: { cmd } })).messages()[1], { event: { end } });
  }
  rig.close();
});

it("starts a process as its user, with nothing inherited", async () => {
  const rig = await withPrograms();
  await rig.stream(start, {
    process: { cmd: "echo", envs: { GREETING: "hey", E: "=x" }, cwd: "~" },
    stdin: false,
  });
  await rig.stream(start, { process: { cmd: "echo" } }, actingAs("root"));
  const [mine, roots] = rig.guest.started;
  assert.deepEqual(mine?.spawn, {
    stdin: false,
    pty: undefined,
    uid: 1000,
    gid: 1000,
    groups: [1000, 27],
    cwd: "/home/user",
    argv: ["echo"],
    env: {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/home/user",
      USER: "user",
      LOGNAME: "user",
      E2B_TEAM_ID: "team",
      GREETING: "hey",
      E2B_SANDBOX: "true",
      E2B_SANDBOX_ID: rig.sandboxId,
      E2B_TEMPLATE_ID: "base",
      E: "=x",
    },
  });
  assert.equal(roots?.spawn.uid, 0);
  assert.equal(roots?.spawn.env["HOME"], "/root");
  assert.equal(roots?.spawn.env["GREETING"], "hello");
  assert.equal(roots?.spawn.stdin, true, "open unless refused");
  rig.close();
});

it("says in the stream what is wrong with a start", async () => {
  const rig = await withPrograms();
  rig.guest.files.write("/file", "");
  const cases: [unknown, Record<string, string>, string, RegExp][] = [
    [{ process: { cmd: "echo", cwd: "/none" } }, {}, "invalid_argument", /^cwd '\/none' does not exist$/],
    [{ process: { cmd: "echo", cwd: "/file" } }, {}, "invalid_argument", /not a directory/],
    [{ process: { cmd: "absent" } }, {}, "invalid_argument", /'absent'.*not found/],
    [{ process: { cmd: "echo" } }, actingAs("ghost"), "unauthenticated", /^invalid username: 'ghost'$/],
    [{ process: { cmd: "echo", envs: { "A=B": "" } } }, {}, "invalid_argument", /A=B/],
    [{}, {}, "invalid_argument", /cmd/],
    [{ process: 3 }, {}, "invalid_argument", /StartRequest/],
  ];
  for (const [message, headers, code, text] of cases) {
    const answer = await rig.stream(start, message, headers);
    const [last] = answer.messages() as { end: { error: { code: string; message: string } } }[];
    assert.deepEqual([answer.status, last?.end.error.code, answer.ended], [200, code, true]);
    assert.match(last?.end.error.message ?? "", text);
  }
  assert.equal(rig.guest.processes.size, 0);
  rig.close();
});

it("lists what runs, and nothing else", async () => {
  const rig = await withPrograms();
  await rig.stream(start, { process: { cmd: "echo" } });
  await rig.stream(start, { process: { cmd: "idle", args: ["-l"], cwd: "/root" }, tag: "t" });
  const { pid } = rig.guest.started[1] ?? {};
  assert.deepEqual((await rig.rpc("process.Process/List", {})).json(), {
    processes: [{ config: { cmd: "idle", args: ["-l"], envs: {}, cwd: "/root" }, pid, tag: "t" }],
  });
  rig.close();
});

it("connects to a running process without replay; several readers get the same", async () => {
  const rig = await withPrograms();
  const first = await rig.stream(start, { process: { cmd: "cat" }, tag: "mine" });
  const pid = rig.guest.started[0]?.pid;
  const input = (text: string) =>
    rig.rpc("process.Process/SendInput", { process: { pid }, input: { stdin: base64(text) } });
  await input("one");
  const second = await rig.stream("process.Process/Connect", { process: { tag: "mine" } });
  await input("two");
  assert.deepEqual(first.messages().slice(1), [
    { event: { data: { stdout: base64("one") } } },
    { event: { data: { stdout: base64("two") } } },
  ]);
  assert.deepEqual(second.messages(), [
    { event: { start: { pid } } },
    { event: { data: { stdout: base64("two") } } },
  ]);
  first.stream.reset("left");
  await settle();
  assert.deepEqual(rig.guest.started[0]?.signals, [], "leaving kills nothing");
  await rig.rpc("process.Process/CloseStdin", { process: { pid } });
  await settle();
  assert.deepEqual(second.messages().at(-1), { end: {} });
  rig.close();
});

it("remembers an end for 30 s, and no longer", async () => {
  const rig = await withPrograms();
  await rig.stream(start, { process: { cmd: "echo" }, tag: "gone" });
  const pid = rig.guest.started[0]?.pid;
  await rig.clock.advance(29_000);
  for (const process of [{ pid }, { tag: "gone" }]) {
    const late = await rig.stream("process.Process/Connect", { process });
    assert.deepEqual(late.messages(), [
      { event: { start: { pid } } },
      { event: { end: { exited: true, status: "exit status 0" } } },
      { end: {} },
    ]);
  }
  await rig.clock.advance(1_000);
  const never = await rig.stream("process.Process/Connect", { process: { pid } });
  assert.deepEqual(never.messages(), [
    { end: { error: { code: "not_found", message: `process with pid ${pid} not found` } } },
  ]);
  rig.close();
});

it("a pid used again names the new process", async () => {
  const rig = await withPrograms();
  await rig.stream(start, { process: { cmd: "echo" } });
  const pid = rig.guest.started[0]?.pid ?? 0;
  rig.guest.reusePid(pid);
  await rig.stream(start, { process: { cmd: "idle" } });
  const connected = await rig.stream("process.Process/Connect", { process: { pid } });
  assert.deepEqual(connected.messages(), [{ event: { start: { pid } } }]);
  await rig.clock.advance(60_000);
  assert.equal(((await rig.rpc("process.Process/List", {})).json() as { processes: [] }).processes.length, 1);
  rig.close();
});

it("a kill returns when the process is gone; other signals do not wait", async () => {
  const rig = await withPrograms();
  let release: () => void = () => undefined;
  rig.guest.programs.set("stubborn", (process) => {
    const end = process.exitBySignal.bind(process);
    process.onSignal = () => true;
    process.exitBySignal = (signal) => {
      release = () => end(signal);
    };
  });
  await rig.stream(start, { process: { cmd: "stubborn" } });
  const process = { pid: rig.guest.started[0]?.pid };
  const signal = (name: string) => rig.rpc("process.Process/SendSignal", { process, signal: name });
  assert.deepEqual((await signal("SIGNAL_SIGTERM")).json(), {});
  assert.equal((await signal("SIGNAL_UNSPECIFIED")).status, 501);
  const kill = await signal("SIGNAL_SIGKILL");
  assert.equal(kill.status, 0, "not answered while it is not reaped");
  release();
  await settle();
  assert.deepEqual(kill.json(), {});
  assert.deepEqual(rig.guest.started[0]?.signals, [15, 9]);
  assert.equal((await signal("SIGNAL_SIGKILL")).status, 404);
  rig.close();
});

it("the time limit of a start ends its stream and kills its process, whoever still reads", async () => {
  const rig = await withPrograms();
  const timed = { "connect-timeout-ms": "5000" };
  const first = await rig.stream(start, { process: { cmd: "idle" } }, timed);
  const left = await rig.stream(start, { process: { cmd: "idle" } }, timed);
  left.stream.reset("left");
  const pid = rig.guest.started[0]?.pid;
  const short = await rig.stream(
    "process.Process/Connect",
    { process: { pid } },
    { "connect-timeout-ms": "1000" },
  );
  await rig.clock.advance(1_000);
  const error = { code: "deadline_exceeded", message: "the request's time limit has passed" };
  assert.deepEqual(short.messages().at(-1), { end: { error } });
  assert.deepEqual(rig.guest.started[0]?.signals, [], "a reader's limit is his own");
  await rig.clock.advance(3_999);
  assert.equal(first.messages().length, 1);
  await rig.clock.advance(1);
  assert.deepEqual(first.messages().at(-1), { end: { error } });
  assert.deepEqual(
    rig.guest.started.map(({ signals }) => signals),
    [[9], [9]],
  );
  await rig.clock.advance(30_000);
  assert.equal(rig.clock.waiting, 0, "no timer is left");
  rig.close();
});

it("shows that it lives when a stream is idle, at the interval asked for", async () => {
  const rig = await withPrograms();
  const quick = await rig.stream(start, { process: { cmd: "cat" } }, { "keepalive-ping-interval": "50" });
  const usual = await rig.stream("process.Process/Connect", { process: { pid: rig.guest.started[0]?.pid } });
  const keepalives = (messages: unknown[]) =>
    messages.filter((m) => JSON.stringify(m).includes("keepalive")).length;
  await rig.clock.advance(49_000);
  await rig.guest.started[0]?.output("stdout", "data resets the timer");
  await rig.clock.advance(49_999);
  assert.equal(keepalives(quick.messages()), 0);
  await rig.clock.advance(1);
  assert.deepEqual(quick.messages().at(-1), { event: { keepalive: {} } });
  await rig.clock.advance(40_000);
  assert.deepEqual([keepalives(quick.messages()), keepalives(usual.messages())], [1, 1]);
  rig.close();
});

it("a guest that dies breaks the stream without an end", async () => {
  const rig = await withPrograms();
  const answer = await rig.stream(start, { process: { cmd: "idle" } });
  rig.guest.die();
  await settle();
  assert.equal(answer.ended, false);
  assert.equal(answer.reset, "guest lost");
  assert.equal(answer.messages().length, 1);
  const next = await rig.stream(start, { process: { cmd: "idle" } });
  assert.equal(next.status, 502);
  rig.close();
});

it("bounds how many processes run", async () => {
  const rig = await withPrograms();
  for (let count = 0; count < 1_000; count += 1) {
    rig.open("POST", `/${start}`, {
      headers: { "content-type": "application/connect+json" },
      body: enveloped(JSON.stringify({ process: { cmd: "idle" } })),
    });
    if (count % 50 === 0) await settle(4);
  }
  await settle(100);
  assert.equal(rig.guest.processes.size, 1_000);
  const more = await rig.stream(start, { process: { cmd: "idle" } });
  const [last] = more.messages() as { end: { error: { code: string } } }[];
  assert.equal(last?.end.error.code, "resource_exhausted");
  rig.guest.started[0]?.kill(9);
  await settle();
  assert.equal((await rig.stream(start, { process: { cmd: "echo" } })).messages().length, 4);
  rig.close();
});

it("speaks the binary codec too", async () => {
  const rig = await withPrograms();
  const headers = { "content-type": "application/connect+proto" };
  // StartRequest { process { cmd: "echo", args: ["hi"] } }
  const request = Buffer.from([0x0a, 10, 0x0a, 4, ...Buffer.from("echo"), 0x12, 2, ...Buffer.from("hi")]);
  const answer = await rig.call("POST", `/${start}`, { headers, body: enveloped(request) });
  const status = Buffer.from("exit status 0");
  assert.deepEqual(
    answer.body,
    Buffer.concat([
      enveloped(Buffer.from([0x0a, 4, 0x0a, 2, 0x08, 2])),
      enveloped(Buffer.from([0x0a, 7, 0x12, 5, 0x0a, 3, ...Buffer.from("hi\n")])),
      enveloped(Buffer.from([0x0a, 19, 0x1a, 17, 0x10, 1, 0x1a, 13, ...status])),
      Buffer.from([2, 0, 0, 0, 2, ...Buffer.from("{}")]),
    ]),
  );
  rig.close();
});

it("refuses other content types and other compressions", async () => {
  const rig = await withPrograms();
  const wrong = await rig.call("POST", "/process.Process/List", {
    headers: { "content-type": "text/plain" },
  });
  assert.equal(wrong.status, 415);
  const packed = await rig.rpc("process.Process/List", {}, { "content-encoding": "br" });
  assert.equal((packed.json() as { code: string }).code, "unimplemented");
  const large = await rig.rpc("process.Process/List", { padding: "x".repeat(5_000_000) });
  assert.equal(large.status, 413);
  assert.equal((large.json() as { code: string }).code, "resource_exhausted");
  rig.close();
});
