// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { GuestFrame } from "@space/spaced-guest";
import { HostRig, type RigAnswer } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const octets = { "content-type": "application/octet-stream" };
const random = (bytes: number, seed = 7): Buffer => {
  const content = Buffer.alloc(bytes);
  for (let at = 0, state = seed; at < bytes; at += 1) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    content[at] = state >> 16;
  }
  return content;
};
const form = (...parts: [name: string, filename: string | undefined, content: Buffer | string][]) => {
  const pieces: Buffer[] = [];
  for (const [name, filename, content] of parts) {
    const file = filename === undefined ? "" : `; filename="${filename}"`;
    pieces.push(Buffer.from(`--b0und\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`));
    pieces.push(Buffer.from(content), Buffer.from("\r\n"));
  }
  const headers = { "content-type": "multipart/form-data; boundary=b0und" };
  return { headers, body: Buffer.concat([...pieces, Buffer.from("--b0und--\r\n")]) };
};
const refused = (answer: RigAnswer, code: number, message: RegExp): void => {
  const body = answer.json() as { code: number; message: string };
  assert.equal(answer.status, code);
  assert.deepEqual(Object.keys(body), ["code", "message"]);
  assert.equal(body.code, code);
  assert.match(body.message, message);
};

it("sends a small file in one answer, in one round trip once the users are known", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.write("/home/user/hello.txt", "hello");
  await rig.call("GET", "/files?path=hello.txt");
  rig.guest.requests.length = 0;
  const answer = await rig.call("GET", "/files?path=hello.txt", {
    headers: { "accept-encoding": "gzip, deflate" },
  });
  assert.equal(answer.status, 200);
  assert.equal(answer.text, "hello");
  assert.equal(answer.ended, true);
  assert.equal(answer.header("content-length"), "5");
  assert.equal(answer.header("content-disposition"), "inline; filename=hello.txt");
  assert.equal(answer.header("vary"), "Accept-Encoding");
  assert.equal(answer.header("last-modified"), "Fri, 02 Jan 2026 03:04:05 GMT");
  assert.deepEqual(rig.guest.requests, [GuestFrame.fetch]);
  rig.close();
});

it("resolves paths as E2B does", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.write("/home/user/a b/c", "home");
  rig.guest.files.write("/root/c", "root's");
  rig.guest.files.write("/etc/c", "absolute");
  const read = async (query: string) => (await rig.call("GET", `/files?${query}`)).text;
  assert.equal(await read("path=a%20b%2Fc"), "home");
  assert.equal(await read("path=~/a+b/c"), "home");
  assert.equal(await read("path=%2Fetc%2Fc"), "absolute");
  assert.equal(await read("path=c&username=root"), "root's");
  refused(await rig.call("GET", "/files?path=~other/c"), 400, /home directory/);
  refused(await rig.call("GET", "/files?path=a%00b"), 400, /zero byte/);
  rig.close();
});

it("says what is wrong: missing, directory, unknown user", async () => {
  const rig = await HostRig.adopted();
  refused(await rig.call("GET", "/files?path=/nothing"), 404, /^path '\/nothing' does not exist$/);
  refused(await rig.call("GET", "/files"), 400, /^path '\/home\/user' is a directory$/);
  refused(await rig.call("GET", "/files?path=a&username=nobody"), 401, /^invalid username: 'nobody'$/);
  refused(
    await rig.call("GET", "/files?path=a", { headers: { "accept-encoding": "identity;q=0" } }),
    406,
    /encoding/,
  );
  rig.close();
});

it("finds a user made a moment ago", async () => {
  const rig = await HostRig.adopted();
  refused(await rig.call("GET", "/files?path=a&username=new"), 401, /new/);
  rig.guest.files.write(
    "/etc/passwd",
    "user:x:1000:1000::/home/user:/bin/sh\nnew:x:7:7::/home/new:/bin/sh\n",
  );
  rig.guest.files.write("/home/new/a", "mine");
  assert.equal((await rig.call("GET", "/files?path=a&username=new")).text, "mine");
  rig.close();
});

it("sends one range, and the whole for what it does not know", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.write("/t", "0123456789");
  const get = (range: string) => rig.call("GET", "/files?path=/t", { headers: { range } });
  const cases: [string, string, string][] = [
    ["bytes=2-4", "234", "bytes 2-4/10"],
    ["bytes=7-", "789", "bytes 7-9/10"],
    ["bytes=-3", "789", "bytes 7-9/10"],
    ["bytes=8-99", "89", "bytes 8-9/10"],
  ];
  for (const [range, text, contentRange] of cases) {
    const answer = await get(range);
    assert.deepEqual([answer.status, answer.text, answer.header("content-range")], [206, text, contentRange]);
    assert.equal(answer.header("content-length"), text.length.toString());
  }
  assert.equal((await get("bytes=10-")).status, 416);
  assert.equal((await get("bytes=0-1,3-4")).status, 200);
  assert.equal((await get("lines=1-2")).status, 200);
  const since = { "if-modified-since": "Fri, 02 Jan 2026 03:04:05 GMT" };
  assert.equal((await rig.call("GET", "/files?path=/t", { headers: since })).status, 304);
  const head = await rig.call("HEAD", "/files?path=/t");
  assert.deepEqual([head.status, head.text, head.header("content-length")], [200, "", "10"]);
  rig.close();
});

it("compresses larger text for those who take it, and leaves bytes and small files alone", async () => {
  const rig = await HostRig.adopted();
  const text = "all work and no play\n".repeat(20_000);
  rig.guest.files.write("/text", text);
  rig.guest.files.write("/bytes", random(300_000));
  const headers = { "accept-encoding": "gzip, deflate" };
  const compressed = rig.open("GET", "/files?path=/text", { headers, body: "" });
  await compressed.done;
  assert.equal(compressed.header("content-encoding"), "gzip");
  assert.equal(compressed.header("content-length"), undefined);
  assert.equal(gunzipSync(compressed.body).toString(), text);
  const plain = await rig.call("GET", "/files?path=/text", { headers: { "accept-encoding": "gzip;q=0" } });
  assert.equal(plain.header("content-encoding"), undefined);
  assert.equal(plain.text, text);
  const bytes = await rig.call("GET", "/files?path=/bytes", { headers });
  assert.equal(bytes.header("content-encoding"), undefined);
  assert.deepEqual(bytes.body, random(300_000));
  rig.close();
});

it("a download stops at a reader that does not read, and nothing else does", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.write("/big", random(8_000_000));
  const answer = rig.open("GET", "/files?path=/big", { body: "" });
  answer.reading = false;
  await settle(200);
  assert.ok(answer.body.length < 2_000_000, `${answer.body.length} bytes were sent`);
  rig.guest.files.write("/small", "quick");
  assert.equal((await rig.call("GET", "/files?path=/small")).text, "quick");
  answer.read();
  await answer.done;
  assert.deepEqual(answer.body, random(8_000_000));
  // The connection is whole again for whoever gets it next.
  for (let turn = 0; turn < 5; turn += 1)
    assert.equal((await rig.call("GET", "/files?path=/small")).text, "quick");
  rig.close();
});

it("any number of slow transfers leaves room for others", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.write("/big", random(4_000_000));
  for (let count = 0; count < 40; count += 1) {
    rig.open("GET", "/files?path=/big", { body: "" }).reading = false;
    rig.open("POST", `/files?path=/up${count}`, { headers: octets }).stream.send(random(100_000));
    await settle();
  }
  await settle(100);
  rig.guest.files.write("/small", "quick");
  assert.equal((await rig.call("GET", "/files?path=/small")).text, "quick");
  rig.close();
});

it("a caller that leaves in the middle of a download ends its connection only", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.write("/big", random(8_000_000));
  const answer = rig.open("GET", "/files?path=/big", { body: "" });
  answer.reading = false;
  await settle(50);
  answer.stream.reset("gone");
  await settle(50);
  rig.guest.files.write("/small", "quick");
  assert.equal((await rig.call("GET", "/files?path=/small")).text, "quick");
  rig.close();
});

it("stores a body: parents made, the user its owner, an existing file replaced", async () => {
  const rig = await HostRig.adopted();
  const content = random(1_000_000);
  const answer = await rig.call("POST", "/files?path=deep/er/f.bin", { headers: octets, body: content });
  assert.equal(answer.status, 200);
  assert.equal(answer.text, '[{"name":"f.bin","path":"/home/user/deep/er/f.bin","type":"file"}]');
  const file = rig.guest.files.find("/home/user/deep/er/f.bin");
  assert.deepEqual(rig.guest.files.read("/home/user/deep/er/f.bin"), content);
  assert.deepEqual([file.uid, file.gid, file.mode], [1000, 1000, 0o644]);
  await rig.call("POST", "/files?path=deep/er/f.bin&username=root", { headers: octets, body: "short" });
  assert.equal(rig.guest.files.read("/root/deep/er/f.bin").toString(), "short");
  assert.equal((await rig.call("POST", "/files?path=/empty", { headers: octets, body: "" })).status, 200);
  assert.equal(rig.guest.files.read("/empty").length, 0);
  rig.close();
});

it("stores a compressed body, and refuses one that is none", async () => {
  const rig = await HostRig.adopted();
  const headers = { ...octets, "content-encoding": "gzip" };
  const answer = rig.open("POST", "/files?path=/z", { headers, body: gzipSync(random(300_000)) });
  await answer.done;
  assert.equal(answer.status, 200);
  assert.deepEqual(rig.guest.files.read("/z"), random(300_000));
  const broken = rig.open("POST", "/files?path=/z", { headers, body: "not gzip" });
  await broken.done;
  refused(broken, 400, /gzip/);
  refused(
    await rig.call("POST", "/files?path=/z", { headers: { ...octets, "content-encoding": "br" }, body: "x" }),
    400,
    /encoding 'br'/,
  );
  rig.close();
});

it("stores the files of a form in their order, by their whole names", async () => {
  const rig = await HostRig.adopted();
  const big = random(400_000);
  const { headers, body } = form(
    ["file", "/tmp/one/a.txt", "first"],
    ["note", undefined, "not a file"],
    ["file", "rel/b.bin", big],
    ["file", "c", ""],
  );
  const answer = await rig.call("POST", "/files", { headers, body });
  assert.deepEqual(answer.json(), [
    { name: "a.txt", path: "/tmp/one/a.txt", type: "file" },
    { name: "b.bin", path: "/home/user/rel/b.bin", type: "file" },
    { name: "c", path: "/home/user/c", type: "file" },
  ]);
  assert.equal(rig.guest.files.read("/tmp/one/a.txt").toString(), "first");
  assert.deepEqual(rig.guest.files.read("/home/user/rel/b.bin"), big);
  rig.close();
});

it("stores a part without a name when the query names the path, byte for byte", async () => {
  const rig = await HostRig.adopted();
  const content = random(5_000);
  const answer = await rig.call("POST", "/files?path=named", form(["file", undefined, content]));
  assert.deepEqual(answer.json(), [{ name: "named", path: "/home/user/named", type: "file" }]);
  assert.deepEqual(rig.guest.files.read("/home/user/named"), content);
  refused(await rig.call("POST", "/files", form(["file", undefined, "x"])), 400, /neither a path nor a name/);
  rig.close();
});

it("refuses bad uploads: the same path twice, a broken form, no path, another type", async () => {
  const rig = await HostRig.adopted();
  refused(await rig.call("POST", "/files", form(["file", "a", "1"], ["file", "./a", "2"])), 400, /same path/);
  const { headers, body } = form(["file", "a", "1"]);
  refused(
    await rig.call("POST", "/files", { headers, body: body.subarray(0, body.length - 12) }),
    400,
    /form/,
  );
  refused(
    await rig.call("POST", "/files", { headers: { "content-type": "multipart/form-data" }, body }),
    400,
    /form/,
  );
  refused(await rig.call("POST", "/files", { headers: octets, body: "x" }), 400, /path is missing/);
  refused(
    await rig.call("POST", "/files?path=/a", { headers: { "content-type": "text/plain" }, body: "x" }),
    400,
    /type/,
  );
  refused(
    await rig.call("POST", "/files?path=/home/user", { headers: octets, body: "x" }),
    400,
    /is a directory/,
  );
  assert.equal((await rig.call("GET", "/health")).status, 204);
  rig.close();
});

it("answers 507 when the guest's disk is full", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.spaceBytes = 100_000;
  const content = random(300_000);
  refused(
    await rig.call("POST", "/files?path=/full", { headers: octets, body: content }),
    507,
    /not enough disk space/,
  );
  refused(await rig.call("POST", "/files", form(["file", "/full2", content])), 507, /not enough disk space/);
  rig.close();
});

it("an upload is taken no faster than the guest takes it", async () => {
  const rig = await HostRig.adopted();
  const upload = rig.open("POST", "/files?path=/up", { headers: octets });
  let accepted = 0;
  const chunk = random(64 * 1024);
  for (let turn = 0; turn < 100; turn += 1) {
    if (upload.stream.send(chunk)) accepted += 1;
    await settle(4);
  }
  assert.ok(accepted > 20, "it does go on");
  upload.stream.end();
  await upload.done;
  assert.equal(rig.guest.files.read("/up").length, 100 * chunk.length);
  rig.close();
});

it("composes files into one and removes them", async () => {
  const rig = await HostRig.adopted();
  rig.guest.files.write("/home/user/1", random(100_000, 1));
  rig.guest.files.write("/home/user/2", "tail");
  const compose = (value: unknown) =>
    rig.call("POST", "/files/compose", {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(value),
    });
  const answer = await compose({ source_paths: ["1", "2"], destination: "out/whole" });
  assert.deepEqual(answer.json(), { name: "whole", path: "/home/user/out/whole", type: "file" });
  const whole = rig.guest.files.read("/home/user/out/whole");
  assert.deepEqual(whole, Buffer.concat([random(100_000, 1), Buffer.from("tail")]));
  assert.deepEqual([...rig.guest.files.list("/home/user", 1)], ["/home/user/out"]);
  refused(await compose({ source_paths: ["gone"], destination: "x" }), 404, /gone/);
  refused(await compose({ destination: "x" }), 400, /compose request/);
  assert.deepEqual([...rig.guest.files.list("/home/user", 1)], ["/home/user/out"]);
  rig.close();
});

it("tells the sandbox's variables and its use of resources", async () => {
  const rig = await HostRig.adopted();
  assert.deepEqual((await rig.call("GET", "/envs")).json(), {
    E2B_TEAM_ID: "team",
    GREETING: "hello",
    E2B_SANDBOX: "true",
    E2B_SANDBOX_ID: rig.sandboxId,
    E2B_TEMPLATE_ID: "base",
  });
  rig.guest.files.write("/proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\nCached: 512 kB\n");
  rig.guest.files.write("/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu1 0 0 0 0\n");
  const metrics = (await rig.call("GET", "/metrics")).json() as Record<string, number>;
  assert.equal(metrics["cpu_count"], 2);
  assert.equal(metrics["mem_total"], 2_097_152);
  assert.equal(metrics["mem_used_mib"], 1);
  assert.deepEqual([metrics["disk_total"], metrics["disk_used"]], [10_000, 6_000]);
  rig.close();
});

it("a dead guest is a sandbox that is not there", async () => {
  const rig = await HostRig.adopted();
  await settle();
  rig.guest.die();
  await settle();
  const answer = await rig.call("GET", "/files?path=/etc/passwd");
  assert.equal(answer.status, 502);
  assert.deepEqual(answer.json(), {
    sandboxId: rig.sandboxId,
    message: "The sandbox was not found",
    code: 502,
  });
  assert.equal((await rig.rpc("filesystem.Filesystem/Stat", { path: "/" })).status, 502);
  rig.close();
});
