// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { peerCredentials, processEvidence, stillRuns } from "@space/platform-linux";
import { nativeLauncherPath } from "@space/spaced-guest";
import { eventually, GuestHost } from "../src/guest-host.ts";
import { needsRoot } from "../src/needs-root.ts";

for (const launcher of ["native", "portable"] as const) {
  const absent = launcher === "native" && !existsSync(nativeLauncherPath);
  const skip = absent ? "no C compiler built the native launcher" : needsRoot;

  test(`${launcher}: guests whose daemon never comes back end, and the launcher with them`, {
    skip,
  }, async () => {
    const host = await GuestHost.open(launcher, { orphanSeconds: 1 });
    const { evidence } = await host.start();
    assert.ok(stillRuns(evidence.guest));
    const launched = processEvidence(peerCredentials(host.substrate.launchClient.socket).pid);
    await host.substrate.close("leave");
    await eventually("the guest ends", () => !stillRuns(evidence.guest));
    await eventually("the launcher ends", () => !stillRuns(launched));
    await host.restart(); // the next daemon clears away what the guest has left on disk
    await host.close();
  });

  test(`${launcher}: the end of guests without a daemon comes, however often their launcher is woken`, {
    skip,
  }, async () => {
    const host = await GuestHost.open(launcher, { orphanSeconds: 2 });
    const { evidence } = await host.start();
    const launched = processEvidence(peerCredentials(host.substrate.launchClient.socket).pid);
    await host.substrate.close("leave");
    let woken = 0;
    const waker = setInterval(() => {
      if (!stillRuns(launched)) return;
      process.kill(launched.pid, "SIGCHLD");
      woken += 1;
    }, 200);
    try {
      await eventually("the guest ends", () => !stillRuns(evidence.guest));
      await eventually("the launcher ends", () => !stillRuns(launched));
    } finally {
      clearInterval(waker);
    }
    assert.ok(woken >= 2, `the fault landed ${woken} times`);
    await host.restart();
    await host.close();
  });
}
