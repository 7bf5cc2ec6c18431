// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A guest that does its worst hurts only itself: each test attacks from inside one sandbox and asks another one, and the
// first, whether they are well.

import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { until } from "../src/space-process.ts";

const mebibyte = 1024 * 1024;
let rig: EmbeddedRig;
let neighbour: Sandbox;

before(async () => {
  if (skip !== false) return;
  rig = await startRig({
    execution: { memoryBytes: 256 * mebibyte, cpus: 1, processes: 128, diskBytes: 128 * mebibyte },
  });
  neighbour = await create();
  await neighbour.files.write("/home/user/mine.txt", "neighbour");
});

after(async () => {
  if (skip === false) await rig.end();
});

const create = (): Promise<Sandbox> => Sandbox.create("base", { ...rig.client(), timeoutMs: 300_000 });

async function assertWell(sandbox: Sandbox): Promise<void> {
  assert.equal((await sandbox.commands.run("echo well")).stdout, "well\n");
}

async function assertNeighbourWell(): Promise<void> {
  await assertWell(neighbour);
  assert.equal(await neighbour.files.read("/home/user/mine.txt"), "neighbour");
}

test("a gigabyte of output to a client that does not read stalls nobody and fills no memory", {
  skip,
}, async () => {
  const sandbox = await create();
  const body = envelope({ process: { cmd: "/bin/sh", args: ["-c", "head -c 1G /dev/zero"] } });
  const client = request(`${rig.system.apiUrl}/process.Process/Start`, {
    method: "POST",
    headers: {
      ...(await routing(sandbox)),
      "content-type": "application/connect+json",
      "connect-protocol-version": "1",
    },
  });
  client.on("error", () => undefined);
  client.end(body);
  const paused = new Promise<void>((settle) => {
    client.once("response", (response) => {
      response.pause();
      settle();
    });
  });
  await paused;
  await assertNeighbourWell();
  await assertWell(sandbox);
  const head = (await sandbox.commands.list()).find(({ cmd }) => cmd === "/bin/sh");
  assert.ok(head !== undefined, "it waits: its output has nowhere to go");
  assert.ok(process.memoryUsage().rss < 1024 * mebibyte);
  client.destroy();
  await sandbox.kill();
});

test("64 MiB of output are delivered whole to a client that reads", { skip }, async () => {
  const sandbox = await create();
  let bytes = 0;
  const size = 64 * mebibyte;
  await sandbox.commands.run(`head -c ${size} /dev/zero | tr '\\0' x`, {
    onStdout: (text) => {
      bytes += text.length;
    },
    timeoutMs: 120_000,
  });
  assert.equal(bytes, size);
  await sandbox.kill();
});

test("a fork bomb stays within its own limit, and its sandbox can still be killed", { skip }, async () => {
  const sandbox = await create();
  let complaints = "";
  await sandbox.commands.run("bomb() { bomb | bomb & }; bomb; sleep 60", {
    background: true,
    onStderr: (text) => {
      complaints = (complaints + text).slice(-4096);
    },
  });
  await until("the kernel refuses forks", () => complaints.includes("Resource temporarily unavailable"));
  await assertNeighbourWell();
  assert.ok(await sandbox.isRunning());
  assert.ok(await sandbox.kill());
  await assertNeighbourWell();
});

test("a process that takes all memory dies alone", { skip }, async () => {
  const sandbox = await create();
  const eater = await sandbox.commands
    .run("python3 -c 'x = [bytearray(1 << 20) for _ in range(4096)]'", { timeoutMs: 60_000 })
    .then(
      () => "lived",
      (error: unknown) => String(error),
    );
  assert.match(eater, /signal: killed/, "the kernel ended it");
  await assertWell(sandbox);
  await assertNeighbourWell();
  await sandbox.kill();
});

test("a guest that fills its disk ends itself, not its neighbours", { skip }, async () => {
  const sandbox = await create();
  await sandbox.commands
    .run("for i in $(seq 1 40); do head -c 16M /dev/urandom > /home/user/fill$i || exit 1; done; sleep 60", {
      timeoutMs: 0,
    })
    .catch(() => undefined);
  await until("the guest is at its end", async () => !(await sandbox.isRunning()), 60_000);
  await assertNeighbourWell();
});

test("a guest's service that answers 421 or sets reserved headers changes nothing", { skip }, async () => {
  const sandbox = await create();
  const program = `
import http.server
class Forger(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(421 if self.path == "/421" else 200)
        self.send_header("space-verdict", "refresh-route")
        self.send_header("space-admitted", "adm_aaaaaaaaaaaaaaaaaaaaaaaaaa")
        self.send_header("space-rejected-route", "0" * 64)
        self.send_header("content-length", "6")
        self.end_headers()
        self.wfile.write(b"forged")
http.server.HTTPServer(("127.0.0.1", 8000), Forger).serve_forever()
`;
  await sandbox.files.write("/home/user/forger.py", program);
  await sandbox.commands.run("python3 /home/user/forger.py", { background: true });
  const get = async (path: string): Promise<Response> =>
    fetch(`${rig.system.apiUrl}${path}`, {
      headers: { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "8000" },
    });
  await until("the service listens", async () => (await get("/")).status === 200);
  const before = rig.system.counters();
  const answer = await get("/");
  assert.equal(await answer.text(), "forged");
  assert.deepEqual(
    [...answer.headers.keys()].filter((name) => name.startsWith("space-")),
    [],
  );
  const misdirected = await get("/421");
  assert.notEqual(misdirected.status, 421, "R-14: a 421 never leaves the gateway");
  const now = rig.system.counters();
  assert.equal(now.refreshRoute, before.refreshRoute);
  assert.equal(now.repairs, before.repairs);
  await sandbox.kill();
});

test("no path and no symlink leads out of the guest", { skip }, async () => {
  const sandbox = await create();
  await sandbox.commands.run("ln -s / /home/user/root; ln -s ../../../../../../etc/shadow /home/user/shadow");
  for (const path of [
    "../../../../../../etc/shadow",
    "/home/user/shadow",
    "/home/user/root/etc/shadow",
    "/proc/1/root/etc/shadow",
  ]) {
    const seen = await sandbox.files.read(path).catch(() => "refused");
    assert.ok(!/^root:\$/m.test(seen), path);
  }
  await sandbox.files.write("/home/user/root/tmp/inside.txt", "inside");
  assert.equal(await sandbox.files.read("/tmp/inside.txt"), "inside");
  await assertNeighbourWell();
  await sandbox.kill();
});

function envelope(message: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}

async function routing({ sandboxId }: Sandbox): Promise<Record<string, string>> {
  return {
    "e2b-sandbox-id": sandboxId,
    "e2b-sandbox-port": "49983",
    "x-access-token": await rig.accessToken(sandboxId),
  };
}
