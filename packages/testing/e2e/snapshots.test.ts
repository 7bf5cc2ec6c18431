// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Sealed snapshots with real processes: in a bucket, over restarts and changes of every key, until nothing of them is left.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { S3ByteStore } from "@space/object-store";
import type { EmbeddedOptions } from "@space/space";
import { Sandbox } from "e2b";
import { type EmbeddedRig, startRig } from "../src/embedded-rig.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { moveElsewhere, placeOf } from "../src/moved-sandboxes.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { type S3Server, startS3rver } from "../src/s3-server.ts";
import { checkout, type Finished, runProgram } from "../src/space-process.ts";

const resourcesBefore = hostResources();
const limitMs = 60_000;
let folder = "";
let server: S3Server;
let bucket: S3ByteStore;
let rig: EmbeddedRig;
let options: Partial<EmbeddedOptions>;

before(async () => {
  if (skip !== false) return;
  folder = mkdtempSync(join(tmpdir(), "space-snapshots-"));
  server = await startS3rver();
  bucket = await S3ByteStore.open(server.options);
  const { endpoint, bucket: name, region, accessKeyId, secretAccessKey } = server.options;
  const credentials = join(folder, "credentials");
  const pair = `AWS_ACCESS_KEY_ID=${accessKeyId}\nAWS_SECRET_ACCESS_KEY=${secretAccessKey.reveal()}\n`;
  writeFileSync(credentials, pair, { mode: 0o600 });
  options = {
    data: join(folder, "data"),
    workers: 2,
    limits: { collectTickMs: 500 },
    snapshots: { kind: "s3", endpoint, bucket: name, region, credentials },
  };
  rig = await startRig(options);
});

after(async () => {
  if (skip !== false) return;
  await rig.end();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
  assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

async function stored(prefix: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of bucket.list(prefix)) keys.push(key);
  return keys;
}

const space = (...args: readonly string[]): Promise<Finished> =>
  runProgram(join(checkout, "space"), [...args, "--data", join(folder, "data")]);

test("files come back from a bucket on another worker, after every key was changed and SPACE was restarted", {
  skip,
  timeout: 300_000,
}, async () => {
  const sandbox = await Sandbox.create({ ...rig.client(), timeoutMs: 250_000 });
  await sandbox.commands.run("head -c 3M /dev/urandom >random; sha256sum random >sum; sync");
  await sandbox.pause();
  const [wrapped = "", ...others] = await stored("keys/");
  assert.deepEqual(others, [], "one tenant, one key");
  const before = await bucket.get(wrapped, 1000);
  const sealedFirst = await stored("chunks/");
  assert.ok(sealedFirst.length >= 5, "several chunks, a manifest, and its chain");

  const { tenants } = JSON.parse((await space("keys", "tenants", "--json")).stdout);
  const [{ tenantId, keys }] = tenants;
  assert.ok(wrapped.startsWith(`keys/${tenantId}/`) && wrapped.endsWith(keys[0]));
  const rotated = await space("keys", "rotate-tenant", tenantId);
  assert.match(rotated.stdout, / seals\n.* opens what it has sealed\n/, rotated.stderr);
  const rewrapped = await space("keys", "rewrap");
  assert.equal(rewrapped.code, 0, rewrapped.stderr);
  assert.notDeepEqual(await bucket.get(wrapped, 1000), before, "it is wrapped anew");
  assert.equal(readFileSync(join(folder, "data/control/key-encryption-keys"), "utf8").split("\n").length, 2);

  await rig.system.stop();
  const { snapshots: _noted, ...again } = options; // it is remembered
  rig = await startRig(again);
  const back = await Sandbox.connect(sandbox.sandboxId, rig.client());
  assert.equal((await back.commands.run("sha256sum --check sum")).stdout, "random: OK\n");
  await back.commands.run("echo more >>sum");
  await back.pause();
  const third = await Sandbox.connect(sandbox.sandboxId, rig.client());
  assert.match((await third.commands.run("cat sum")).stdout, /more/);
  assert.ok((await stored(`chunks/${tenantId}/`)).length > 0);

  await third.kill();
  const limit = AbortSignal.timeout(limitMs);
  for (let left = ["?"] as readonly string[]; left.length > 0; ) {
    limit.throwIfAborted();
    await pause(100);
    left = [...(await stored("chunks/")), ...(await stored("condemned/"))];
  }
  assert.equal((await stored("keys/")).length, 2, "the keys alone are left");
});

test("R-7: where snapshots are in a bucket, a move takes the chunks from the worker that made them", {
  skip,
  timeout: 120_000,
}, async () => {
  const sandbox = await Sandbox.create({ ...rig.client(), timeoutMs: 100_000 });
  await sandbox.commands.run("head -c 3M /dev/urandom >random; sha256sum random >sum; sync");
  const from = await placeOf(rig, sandbox.sandboxId);
  await moveElsewhere(rig, sandbox.sandboxId, from);
  assert.notEqual(await placeOf(rig, sandbox.sandboxId), from);
  assert.equal((await sandbox.commands.run("sha256sum --check sum")).stdout, "random: OK\n");
  await sandbox.kill();
  const tail = await space("audit", "tail", "-n", "400", "--json");
  const [received = "", ...more] = tail.stdout
    .split("\n")
    .filter((line) => line.includes("hand-over/received"));
  assert.deepEqual(more, [], tail.stderr);
  assert.match(received, /"direct":[1-9]/);
  assert.match(received, /"stored":0/);
  assert.match(received, /"problem":"none"/);
  assert.ok(received.includes(from), "the worker that it left gave them");
});

test("offline the same keys are changed, and another place is refused", {
  skip,
  timeout: 120_000,
}, async () => {
  await rig.system.stop();
  const before = readFileSync(join(folder, "data/control/key-encryption-keys"), "utf8");
  const rewrapped = await space("keys", "rewrap");
  assert.match(rewrapped.stdout, /wrapped under [0-9a-f]{32}\n/, rewrapped.stderr);
  assert.notEqual(readFileSync(join(folder, "data/control/key-encryption-keys"), "utf8"), before);
  const elsewhere = { kind: "directory", path: join(folder, "elsewhere") } as const;
  await assert.rejects(startRig({ ...options, snapshots: elsewhere }), { code: "host/unfit" });
  rig = await startRig(options);
});
