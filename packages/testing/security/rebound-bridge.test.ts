// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Written as a process of the worker's own host that takes the place of an endpoint: it binds the path of the bridge's
// socket again.

import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { after, test } from "node:test";
import { nativeLauncherPath } from "@space/spaced-guest";
import { Sandbox } from "e2b";
import { startRig } from "../src/embedded-rig.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { Impostor } from "../src/impostor.ts";
import { needsRoot } from "../src/needs-root.ts";
import { until } from "../src/space-process.ts";

const skip = needsRoot || (existsSync(nativeLauncherPath) ? false : "the native launcher is not built");
const resourcesBefore = hostResources();

after(() => {
  if (skip !== false) return;
  assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

/** Where the bridges of this host listen. */
function bridgeSockets(): readonly string[] {
  const paths = readFileSync("/proc/net/unix", "utf8").match(/\/\S+\/bridge\/socket$/gm);
  return [...new Set(paths)].filter((path) => existsSync(path));
}

test("R-19, R-20: who binds the bridge's path again is found out on the next connection and hears nothing", {
  skip,
}, async () => {
  const others = new Set(bridgeSockets());
  const rig = await startRig({ workers: 1 });
  try {
    const sandbox = await Sandbox.create("base", { ...rig.client(), timeoutMs: 300_000 });
    await sandbox.files.write("/home/user/secret", "secret");
    const [path = assert.fail("the bridge listens")] = bridgeSockets().filter((found) => !others.has(found));
    renameSync(path, `${path}.aside`); // the bridge lives, and listens there
    {
      await using impostor = await Impostor.at(path);
      const [pid = assert.fail("the daemon runs")] = rig.system.workerPids().values();
      process.kill(pid, "SIGKILL"); // its verified connection ends with it; its successor dials anew
      await until("the impostor is dialled", () => impostor.connections > 0);
      await assert.rejects(sandbox.files.read("/home/user/secret", { requestTimeoutMs: 3000 }));
      faultLanded("the daemon dialled the impostor in the place of the bridge", impostor.connections);
      assert.equal(impostor.bytes, 0, "it was told nothing, no secret of an activation and no operation");
    }
    renameSync(`${path}.aside`, path);
    let read = "";
    await until("the bridge is verified again", async () => {
      read = await sandbox.files.read("/home/user/secret").catch(() => "");
      return read !== "";
    });
    assert.equal(read, "secret", "the very same guest, which nobody ended for it");
    await sandbox.kill();
  } finally {
    await rig.end();
  }
});
