// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { duplexPair } from "node:stream";
import { after, before, it } from "node:test";
import { type HostControl, newActivationId, newSandboxId, Secret } from "@space/model";
import { peerCredentials, processStartTime } from "@space/platform-linux";
import { nativeLauncherPath } from "@space/spaced-guest";
import { type ConnectedGuest, createSpacedHost, type SpacedHost } from "@space/spaced-host";
import { FrameLink, type HostOperationHead, hostControlOver } from "@space/wire";
import { GuestHost, type TestGuest } from "../src/guest-host.ts";
import { actingAs, enveloped, RigAnswer, type RigRequest } from "../src/host-rig.ts";
import { needsRoot } from "../src/needs-root.ts";

// The bridge in front of a real guest: real sockets, real processes, real time.

const random = { bytes: (length: number): Uint8Array => randomBytes(length) };
const clock = {
  wallMs: () => Date.now(),
  bootMs: () => performance.now(),
  monotonicMs: () => performance.now(),
  after: (delayMs: number, callback: () => void) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};
const skip = needsRoot || (existsSync(nativeLauncherPath) ? false : "the native launcher is not built");

let guests: GuestHost;
let guest: TestGuest;
let host: SpacedHost;
let link: FrameLink;
let control: HostControl;

async function connectGuest(socketPath: string): Promise<ConnectedGuest> {
  const socket = connect({ path: socketPath, allowHalfOpen: true });
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const { pid, uid } = peerCredentials(socket);
  return { socket, peer: { pid, uid, startTime: processStartTime(pid) ?? "" } };
}

before(async () => {
  if (skip !== false) return;
  guests = await GuestHost.open("native");
  guest = await guests.start();
  host = createSpacedHost(
    { daemon: { uid: 0 } },
    { clock, random, connectGuest, onOrphaned: () => undefined },
  );
  const [near, far] = duplexPair();
  host.serve(far, { pid: process.pid, uid: 0, startTime: "1" });
  link = new FrameLink(near, { dialled: true });
  control = hostControlOver(link, clock);
  await control.adopt({
    activationId: guest.activationId,
    sandboxId: newSandboxId(random),
    template: "base",
    socketPath: guest.evidence.socketPath,
    activationSecret: new Secret<Uint8Array>(guest.secret),
    guest: guest.evidence.guest,
    isFirst: true,
    variables: { GREETING: "hello" },
  });
});

after(async () => {
  if (skip !== false) return;
  host.close();
  link.destroy(undefined);
  await guests.close();
});

function open(method: string, path: string, request: RigRequest = {}): RigAnswer {
  const head: HostOperationHead = {
    activation: request.activation ?? guest.activationId,
    target: request.target ?? { purpose: "control" },
    method,
    path,
    headers: Object.entries(request.headers ?? {}).flat(),
  };
  return new RigAnswer((answer) => {
    const stream = link.open(JSON.stringify(head), answer.handlers, false);
    stream.send(Buffer.from(request.body ?? ""));
    stream.end();
    return stream;
  });
}

async function until(condition: () => boolean, limitMs = 20_000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!condition()) {
    assert.ok(performance.now() < endMs, "the deadline has passed");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function call(method: string, path: string, request: RigRequest = {}): Promise<RigAnswer> {
  const answer = open(method, path, request);
  await until(() => answer.ended || answer.reset !== undefined);
  return answer;
}

const rpc = (method: string, message: unknown, headers = {}) =>
  call("POST", `/${method}`, {
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(message),
  });

const start = (script: string, more = {}, headers = {}) =>
  open("POST", "/process.Process/Start", {
    headers: { "content-type": "application/connect+json", ...headers },
    body: enveloped(
      JSON.stringify({ process: { cmd: "/bin/bash", args: ["-l", "-c", script] }, stdin: false, ...more }),
    ),
  });

interface Event {
  readonly event?: {
    readonly start?: { readonly pid: number };
    readonly data?: Readonly<Record<string, string>>;
    readonly end?: Readonly<Record<string, unknown>>;
  };
}

const output = (answer: RigAnswer, kind: string): string =>
  (answer.messages() as Event[])
    .map(({ event }) => Buffer.from(event?.data?.[kind] ?? "", "base64").toString())
    .join("");
const end = (answer: RigAnswer) => (answer.messages() as Event[]).find(({ event }) => event?.end)?.event?.end;
const pidOf = (answer: RigAnswer) => (answer.messages() as Event[])[0]?.event?.start?.pid ?? 0;

async function run(script: string, more = {}, headers = {}): Promise<RigAnswer> {
  const answer = start(script, more, headers);
  await until(() => answer.ended || answer.reset !== undefined);
  return answer;
}

it("runs a command: output, errors, exit code, environment", { skip }, async () => {
  const answer = await run(
    'echo hi; echo oops >&2; echo "$GREETING $E2B_SANDBOX $USER $HOME $PWD"; id -nG; exit 3',
  );
  assert.equal(output(answer, "stdout"), "hi\nhello true user /home/user /home/user\nuser sudo users\n");
  assert.equal(output(answer, "stderr"), "oops\n");
  assert.deepEqual(end(answer), {
    exitCode: 3,
    exited: true,
    status: "exit status 3",
    error: "exit status 3",
  });
  const asRoot = await run("id -un; pwd", {}, actingAs("root"));
  assert.equal(output(asRoot, "stdout").split("\n")[0], "root");
});

it("writes and reads a megabyte of random bytes, byte for byte", { skip }, async () => {
  const content = randomBytes(1_000_000);
  const written = await call("POST", "/files?path=deep/blob", {
    headers: { "content-type": "application/octet-stream" },
    body: content,
  });
  assert.equal(written.text, '[{"name":"blob","path":"/home/user/deep/blob","type":"file"}]');
  const read = await call("GET", "/files?path=deep/blob");
  assert.ok(read.body.equals(content));
  const summed = await run("sha256sum deep/blob; stat -c '%U %a' deep deep/blob");
  const digest = createHash("sha256").update(content).digest("hex");
  assert.equal(output(summed, "stdout"), `${digest}  deep/blob\nuser 755\nuser 644\n`);
});

it("serves the file system", { skip }, async () => {
  await run("mkdir -p tree/sub && echo x > tree/sub/file && ln -s sub tree/link && ln -s loop tree/loop");
  const listed = (await rpc("filesystem.Filesystem/ListDir", { path: "tree", depth: 2 })).json() as {
    entries: { path: string; type?: string; symlinkTarget?: string; owner: string }[];
  };
  assert.deepEqual(
    listed.entries.map(({ path, type, symlinkTarget, owner }) => [path, type, symlinkTarget, owner]),
    [
      ["/home/user/tree/link", "FILE_TYPE_DIRECTORY", "/home/user/tree/sub", "user"],
      ["/home/user/tree/loop", undefined, "loop", "user"],
      ["/home/user/tree/sub", "FILE_TYPE_DIRECTORY", undefined, "user"],
      ["/home/user/tree/sub/file", "FILE_TYPE_FILE", undefined, "user"],
    ],
  );
  assert.equal((await rpc("filesystem.Filesystem/Stat", { path: "none" })).status, 404);
  assert.equal((await rpc("filesystem.Filesystem/MakeDir", { path: "tree" })).status, 409);
  const moved = await rpc("filesystem.Filesystem/Move", {
    source: "tree/sub/file",
    destination: "new/place",
  });
  assert.equal((moved.json() as { entry: { path: string } }).entry.path, "/home/user/new/place");
  await rpc("filesystem.Filesystem/Remove", { path: "tree" });
  assert.equal((await rpc("filesystem.Filesystem/Stat", { path: "tree" })).status, 404);
  assert.equal((await call("GET", "/files?path=/proc/version")).text.startsWith("Linux"), true);
});

it("a user made by one command is known to the next", { skip }, async () => {
  await run("echo 'made:x:1234:1234::/home/made:/bin/bash' >> /etc/passwd", {}, actingAs("root"));
  assert.equal(
    output(
      await run("id -u", { process: { cmd: "id", args: ["-u"], cwd: "/" } }, actingAs("made")),
      "stdout",
    ),
    "1234\n",
  );
});

it("feeds stdin, and a kill has reaped when it returns", { skip }, async () => {
  const cat = start("cat", { stdin: true });
  await until(() => cat.chunks.length > 0);
  const process = { pid: pidOf(cat) };
  await rpc("process.Process/SendInput", {
    process,
    input: { stdin: Buffer.from("typed").toString("base64") },
  });
  await rpc("process.Process/CloseStdin", { process });
  await until(() => cat.ended);
  assert.equal(output(cat, "stdout"), "typed");

  const idle = start("exec sleep 1000");
  await until(() => idle.chunks.length > 0);
  const killed = await rpc("process.Process/SendSignal", {
    process: { pid: pidOf(idle) },
    signal: "SIGNAL_SIGKILL",
  });
  assert.deepEqual(killed.json(), {});
  const probe = await run(`kill -0 ${pidOf(idle)}`);
  assert.equal(end(probe)?.["exitCode"], 1);
  assert.equal(end(idle)?.["status"], "signal: killed");
});

it("serves a terminal", { skip }, async () => {
  const answer = open("POST", "/process.Process/Start", {
    headers: { "content-type": "application/connect+json" },
    body: enveloped(
      JSON.stringify({
        process: { cmd: "/bin/bash", args: ["-i", "-l"], envs: { TERM: "xterm-256color", PS1: "$ " } },
        pty: { size: { cols: 90, rows: 20 } },
      }),
    ),
  });
  await until(() => answer.chunks.length > 0);
  const process = { pid: pidOf(answer) };
  const type = (text: string) =>
    rpc("process.Process/SendInput", { process, input: { pty: Buffer.from(text).toString("base64") } });
  await rpc("process.Process/Update", { process, pty: { size: { cols: 91, rows: 21 } } });
  await type("stty size; exit 4\r");
  await until(() => answer.ended);
  assert.match(output(answer, "pty"), /21 91/);
  assert.equal(end(answer)?.["exitCode"], 4);
});

it("watches a directory, new sub-directories too", { skip }, async () => {
  await run("mkdir -p watched");
  const answer = open("POST", "/filesystem.Filesystem/WatchDir", {
    headers: { "content-type": "application/connect+json" },
    body: enveloped(JSON.stringify({ path: "watched", recursive: true, includeEntry: true })),
  });
  await until(() => answer.chunks.length > 0);
  await run("mkdir -p watched/a/b && echo x > watched/a/b/c && rm watched/a/b/c");
  const events = () =>
    (
      answer.messages() as { filesystem?: { name: string; type: string; entry?: { owner: string } } }[]
    ).flatMap(({ filesystem }) => filesystem ?? []);
  await until(() => events().some(({ name, type }) => name === "a/b/c" && type === "EVENT_TYPE_REMOVE"));
  assert.equal(events().find(({ name }) => name === "a")?.entry?.owner, "user");
  answer.stream.reset("cancelled");
});

it("a gigabyte that nobody reads costs a bounded memory, and stops nobody else", { skip }, async () => {
  const rssBefore = process.memoryUsage().rss;
  const flood = start("head -c 1000000000 /dev/zero");
  flood.reading = false;
  await until(() => flood.body.length > 400_000);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(flood.body.length < 1_500_000, `${flood.body.length} bytes were sent`);
  assert.ok(process.memoryUsage().rss - rssBefore < 100 * 1024 * 1024);
  assert.equal(output(await run("echo quick"), "stdout"), "quick\n");
  await rpc("process.Process/SendSignal", { process: { pid: pidOf(flood) }, signal: "SIGNAL_SIGKILL" });
  flood.read();
  await until(() => flood.ended);
  assert.equal(end(flood)?.["status"], "signal: killed");
});

it("passes a flood on at the reader's pace, whole", { skip }, async () => {
  const answer = await run("head -c 30000000 /dev/zero | tr '\\0' 'z'");
  assert.equal(output(answer, "stdout").length, 30_000_000);
});

it("the time limit of a start kills", { skip }, async () => {
  const answer = await run("sleep 1000", {}, { "connect-timeout-ms": "300" });
  assert.deepEqual(
    (answer.messages().at(-1) as { end: { error: { code: string } } }).end.error.code,
    "deadline_exceeded",
  );
  const probe = await run(`sleep 0.2; kill -0 ${pidOf(answer)}`);
  assert.equal(end(probe)?.["exitCode"], 1);
});

it("reaches the user's own server, and says when there is none", { skip }, async () => {
  const target = { purpose: "service-port", port: 8123, protocol: "http" } as const;
  const closed = await call("GET", "/", { target });
  assert.deepEqual([closed.status, closed.portClosed], [502, true]);
  const server = start("echo served > index.html; exec python3 -m http.server 8123 --bind 127.0.0.1");
  await until(() => server.chunks.length > 0);
  let answer = closed;
  while (answer.portClosed) answer = await call("GET", "/index.html", { target });
  assert.deepEqual([answer.status, answer.text], [200, "served\n"]);
  await rpc("process.Process/SendSignal", { process: { pid: pidOf(server) }, signal: "SIGNAL_SIGKILL" });
});

it("quiesces", { skip }, async () => {
  assert.equal(await control.quiesce(guest.activationId, 1_000, false), true);
});

it("R-3: processes go on under the next activation, and the old one is nobody", { skip }, async () => {
  const counter = start("for ((i = 0; ; i++)); do echo $i; sleep 0.02; done");
  await until(() => output(counter, "stdout").includes("2\n"));
  const to = newActivationId(random);
  const activationSecret = new Secret<Uint8Array>(random.bytes(32));
  await control.rekey({ from: guest.activationId, to, activationSecret });
  await until(() => counter.reset !== undefined);
  assert.equal((await call("GET", "/health")).status, 503);
  const seen = output(counter, "stdout").trim().split("\n").length;
  const connected = open("POST", "/process.Process/Connect", {
    activation: to,
    headers: { "content-type": "application/connect+json" },
    body: enveloped(JSON.stringify({ process: { pid: pidOf(counter) } })),
  });
  await until(() => output(connected, "stdout").split("\n").length > 3);
  assert.ok(Number(output(connected, "stdout").split("\n")[0]) >= seen);
  await control.release(to);
});
