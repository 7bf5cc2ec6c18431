// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { constants } from "node:os";
import { it } from "node:test";
import { encodeFrame, encodeStarted, FrameBuilder, GuestFrame } from "@space/spaced-guest";
import { HostRig } from "../src/host-rig.ts";

const entry = (into: FrameBuilder): FrameBuilder =>
  into.u8(1).u8(0).u32(0o644).u32(0).u32(0).u64(3n).i64(0n).u32(0).string("/x").string("");

const endless = (): Buffer => {
  const frame = new FrameBuilder(1_100_000).begin(GuestFrame.data);
  for (let count = 0; count < 20_000; count += 1) entry(frame);
  const page = frame.end().finish();
  return Buffer.concat(Array.from({ length: 6 }, () => page));
};

const lies: readonly [string, number, () => Buffer][] = [
  ["a frame above the limit", GuestFrame.stat, () => Buffer.from([0xff, 0xff, 0xff, 0xff, 16])],
  ["an entry cut short", GuestFrame.stat, () => encodeFrame(GuestFrame.ok, Buffer.from([1, 0]))],
  ["a length beyond the payload", GuestFrame.stat, () => encodeFrame(GuestFrame.ok, Buffer.alloc(60, 0xff))],
  ["a frame of another operation", GuestFrame.stat, () => encodeFrame(GuestFrame.exited, Buffer.alloc(5))],
  ["an error without a step", GuestFrame.stat, () => encodeFrame(GuestFrame.error, Buffer.alloc(4))],
  ["a listing without end", GuestFrame.list, endless],
];

for (const [what, type, lie] of lies) {
  it(`${what} ends that operation and nothing else`, async () => {
    const rig = await HostRig.adopted();
    rig.guest.files.write("/small", "fine");
    rig.guest.lies.set(type, lie());
    const method = type === GuestFrame.list ? "ListDir" : "Stat";
    const answer = await rig.rpc(`filesystem.Filesystem/${method}`, { path: "/small" });
    assert.ok([429, 500, 502].includes(answer.status), `${answer.status} ${answer.text}`);
    for (let turn = 0; turn < 20; turn += 1) {
      assert.equal((await rig.call("GET", "/files?path=/small")).text, "fine");
    }
    rig.close();
  });
}

const emptyContent = encodeFrame(GuestFrame.content, Buffer.alloc(20));
for (const [what, lie] of [
  ["a content without its head", encodeFrame(GuestFrame.content, Buffer.alloc(19))],
  ["an answer to another request", encodeFrame(GuestFrame.ok)],
  ["a second answer", Buffer.concat([emptyContent, emptyContent, emptyContent])],
] as const) {
  it(`${what} ends the downloads of that connection and nothing else`, async () => {
    const rig = await HostRig.adopted();
    rig.guest.files.write("/small", "fine");
    await rig.call("GET", "/files?path=/small"); // the users are known
    rig.guest.lies.set(GuestFrame.fetch, lie);
    const answers = await Promise.all([1, 2].map(() => rig.call("GET", "/files?path=/small")));
    for (const { status, text } of answers) assert.ok(status === 502 || text === "", `${status} ${text}`);
    rig.guest.lies.clear();
    assert.equal((await rig.call("GET", "/files?path=/small")).text, "fine");
    rig.close();
  });
}

it("a guest that sends more or less than it announced breaks its own download", async () => {
  const rig = await HostRig.adopted();
  const announced = entry(new FrameBuilder().begin(GuestFrame.ok)).end();
  const send = (text: string) => {
    const data = encodeFrame(GuestFrame.data, Buffer.from(text));
    rig.guest.lies.set(
      GuestFrame.read,
      Buffer.concat([announced.finish(), data, encodeFrame(GuestFrame.end)]),
    );
    return rig.call("GET", "/files?path=/x&username=user");
  };
  await rig.call("GET", "/files?path=/x"); // the users are known
  const tooLarge = new FrameBuilder().begin(GuestFrame.error).u32(constants.errno.EFBIG).string("read");
  rig.guest.lies.set(GuestFrame.fetch, tooLarge.end().finish());
  assert.deepEqual([(await send("1234567")).text, (await send("123")).text], ["123", "123"]);
  const short = await send("1");
  assert.deepEqual([short.ended, short.reset], [false, "file shrank"]);
  rig.close();
});

it("a process that sends what no process may is lost, and only it", async () => {
  const rig = await HostRig.adopted();
  const started = encodeStarted({ pid: 9, stdinReceived: 0, outputOffset: 0 });
  rig.guest.lies.set(GuestFrame.spawn, Buffer.concat([started, encodeFrame(GuestFrame.ok)]));
  const answer = await rig.stream("process.Process/Start", { process: { cmd: "x" } });
  assert.equal(answer.ended, false);
  assert.equal(answer.reset, "guest lost");
  assert.deepEqual((await rig.rpc("process.Process/List", {})).json(), { processes: [] });
  assert.equal((await rig.call("GET", "/health")).status, 204);
  rig.close();
});
