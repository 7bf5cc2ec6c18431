// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { newActivationId, Secret } from "@space/model";
import { ContinuingCaller } from "../src/continuing-caller.ts";
import { HostRig, type RigAnswer } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const watchDir = "filesystem.Filesystem/WatchDir";
const rpc = (name: string): string => `filesystem.Filesystem/${name}`;
const [created, written, removed, renamed, modeChanged] = [1, 2, 3, 4, 5];
const event = (type: string, name: string) => ({ filesystem: { name, type: `EVENT_TYPE_${type}` } });

async function withFolder(): Promise<HostRig> {
  const rig = await HostRig.adopted();
  rig.guest.files.mkdir("/home/user/w", { uid: 1000, gid: 1000 }, true);
  return rig;
}

function endOf(answer: RigAnswer): string | undefined {
  const last = answer.messages().at(-1) as { end?: { error?: { code: string } } } | undefined;
  return last?.end?.error?.code;
}

it("streams what happens in a directory, and ends the guest's watch with the caller's", async () => {
  const rig = await withFolder();
  const answer = await rig.stream(watchDir, { path: "w", recursive: true, includeEntry: true });
  const watch = rig.guest.watches[0];
  assert.deepEqual([watch?.path, watch?.flags], ["/home/user/w", 3]);
  watch?.tell(created ?? 0, "a");
  watch?.tell(written ?? 0, "a");
  watch?.tell(modeChanged ?? 0, "a");
  watch?.tell(renamed ?? 0, "a");
  watch?.tell(removed ?? 0, "sub/b");
  await settle();
  assert.deepEqual(answer.messages(), [
    { start: {} },
    event("CREATE", "a"),
    event("WRITE", "a"),
    event("CHMOD", "a"),
    event("RENAME", "a"),
    event("REMOVE", "sub/b"),
  ]);
  await rig.clock.advance(90_000);
  assert.deepEqual(answer.messages().at(-1), { keepalive: {} });
  answer.stream.reset("cancelled");
  await settle();
  assert.equal(watch?.open, false);
  rig.close();
});

it("says what cannot be watched", async () => {
  const rig = await withFolder();
  rig.guest.files.write("/home/user/file", "");
  assert.equal(endOf(await rig.stream(watchDir, { path: "none" })), "not_found");
  assert.equal(endOf(await rig.stream(watchDir, { path: "file" })), "invalid_argument");
  const polled = await rig.rpc(rpc("CreateWatcher"), { path: "none" });
  assert.equal((polled.json() as { code: string }).code, "not_found");
  for (const method of ["GetWatcherEvents", "RemoveWatcher"]) {
    const answer = await rig.rpc(rpc(method), { watcherId: "none" });
    assert.equal((answer.json() as { code: string }).code, "not_found");
  }
  rig.close();
});

it("a polled watcher keeps what happens until it is asked, and is forgotten when it is not", async () => {
  const rig = await withFolder();
  const { watcherId } = (await rig.rpc(rpc("CreateWatcher"), { path: "w" })).json() as { watcherId: string };
  const watch = rig.guest.watches[0];
  watch?.tell(created ?? 0, "a");
  await settle();
  const poll = () => rig.rpc(rpc("GetWatcherEvents"), { watcherId });
  assert.deepEqual((await poll()).json(), { events: [{ name: "a", type: "EVENT_TYPE_CREATE" }] });
  assert.deepEqual((await poll()).json(), {});
  await rig.clock.advance(9 * 60_000);
  assert.equal((await poll()).status, 200);
  await rig.clock.advance(9 * 60_000);
  assert.equal(watch?.open, true);
  await rig.rpc(rpc("RemoveWatcher"), { watcherId });
  assert.equal(watch?.open, false);
  await rig.rpc(rpc("CreateWatcher"), { path: "w" });
  await rig.clock.advance(10 * 60_000);
  assert.equal(rig.guest.watches[1]?.open, false);
  rig.close();
});

it("events that are lost are never lost without a word", async () => {
  const rig = await withFolder();
  const streamed = await rig.stream(watchDir, { path: "w" });
  rig.guest.watches[0]?.overflow();
  await settle();
  assert.equal(endOf(streamed), "resource_exhausted");
  assert.equal(rig.guest.watches[0]?.open, false);

  const { watcherId } = (await rig.rpc(rpc("CreateWatcher"), { path: "w" })).json() as { watcherId: string };
  const poll = async () => (await rig.rpc(rpc("GetWatcherEvents"), { watcherId })).json();
  rig.guest.watches[1]?.overflow();
  await settle();
  assert.equal(((await poll()) as { code: string }).code, "resource_exhausted");
  rig.guest.watches[1]?.tell(created ?? 0, "later");
  await settle();
  assert.deepEqual(await poll(), { events: [{ name: "later", type: "EVENT_TYPE_CREATE" }] });
  for (let at = 0; at <= 10_000; at += 1) rig.guest.watches[1]?.tell(created ?? 0, `f${at}`);
  await settle(200);
  assert.equal(((await poll()) as { code: string }).code, "resource_exhausted", "its queue has a bound");
  assert.deepEqual(await poll(), {});
  rig.close();
});

it("a sandbox watches a bounded number of directories", async () => {
  const rig = await withFolder();
  const answers = [];
  for (let at = 0; at < 64; at += 1) answers.push(await rig.stream(watchDir, { path: "w" }));
  assert.equal(endOf(await rig.stream(watchDir, { path: "w" })), "resource_exhausted");
  answers[0]?.stream.reset("cancelled");
  await settle();
  assert.equal(endOf(await rig.stream(watchDir, { path: "w" })), undefined);
  rig.close();
});

it("R-22: a watch goes on after a cut, each event once, and watches anew under the next identity", async () => {
  const rig = await withFolder();
  const caller = await ContinuingCaller.open(rig, watchDir, { path: "w" });
  rig.guest.watches[0]?.tell(created ?? 0, "one");
  await settle();
  caller.take();
  caller.current.stream.reset("transport");
  rig.guest.watches[0]?.tell(created ?? 0, "two");
  await settle();
  const to = newActivationId(rig.random);
  const activationSecret = new Secret<Uint8Array>(rig.random.bytes(32));
  await rig.control.rekey({ from: rig.activationId, to, activationSecret });
  assert.deepEqual(
    rig.guest.watches.map(({ open }) => open),
    [false, true],
  );
  rig.guest.watches[1]?.tell(created ?? 0, "three");
  await settle();
  await caller.goOn({ activation: to });
  assert.deepEqual(
    caller.messages().slice(1),
    ["one", "two", "three"].map((name) => event("CREATE", name)),
  );
  rig.close();
});
