// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A worker's disk that has no room for a snapshot: an image of a file system of our own, mounted where the data are.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Sandbox } from "e2b";
import { startRig } from "../src/embedded-rig.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot } from "../src/needs-root.ts";

const mebibyte = 1024 * 1024;
/** Workers start guests only while they have a gibibyte left. */
const imageBytes = 1536 * mebibyte;

const resourcesBefore = hostResources();
const folder = mkdtempSync(join(tmpdir(), "space-full-disk-"));
const data = join(folder, "data");
const problem = needsRoot === false ? mounted() : needsRoot;
after(() => {
  if (problem === undefined) run("umount", data);
  rmSync(folder, { recursive: true, force: true });
  if (needsRoot === false) assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

function run(command: string, ...args: readonly string[]): string | undefined {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? undefined : `${command}: ${stderr}`;
}

/** Why there is no such file system here, if there is none. */
function mounted(): string | undefined {
  const image = join(folder, "image");
  mkdirSync(data);
  closeSync(openSync(image, "w"));
  truncateSync(image, imageBytes);
  return run("mkfs.ext4", "-q", "-F", image) ?? run("mount", "-o", "loop", image, data);
}

test("a pause that finds the disk full says so, loses nothing, and is done when there is room again", {
  skip: problem ?? false,
  timeout: 240_000,
}, async () => {
  const rig = await startRig({ data });
  try {
    const sandbox = await Sandbox.create({ ...rig.client(), timeoutMs: 200_000 });
    await sandbox.commands.run("head -c 40M /dev/urandom >kept; sha256sum kept >sum; sync");
    const counter = await sandbox.commands.run(
      "n=0; while :; do n=$((n+1)); echo $n >count; sleep 0.1; done",
      {
        background: true,
      },
    );
    const { bavail, bsize } = statfsSync(data);
    const ballast = join(data, "ballast");
    assert.equal(run("fallocate", "-l", String(bavail * bsize - 80 * mebibyte), ballast), undefined);

    await assert.rejects(
      sandbox.pause(),
      /the disk for snapshots is full and the sandbox is as it was; free space there/,
    );

    assert.equal((await sandbox.getInfo()).state, "running");
    assert.equal((await sandbox.commands.run("sha256sum --check sum")).stdout, "kept: OK\n");
    const count = async (): Promise<number> => Number((await sandbox.commands.run("cat count")).stdout);
    const before = await count();
    while ((await count()) <= before) await new Promise((resolve) => setTimeout(resolve, 50));
    await counter.disconnect();

    rmSync(ballast);
    await sandbox.pause();
    const again = await Sandbox.connect(sandbox.sandboxId, rig.client());
    assert.equal((await again.commands.run("sha256sum --check sum")).stdout, "kept: OK\n");
    await again.kill();
  } finally {
    await rig.end();
  }
});
