// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { bootTimeNanoseconds, ControlGroups } from "@space/platform-linux";
import { GuestError } from "@space/spaced-guest";
import type { LauncherKind } from "@space/substrate-namespace";
import { eventually } from "../src/guest-host.ts";
import { LaunchRig } from "../src/launch-rig.ts";
import { needsRoot } from "../src/needs-root.ts";

const limits = { memoryBytes: 2 ** 28, cpus: 1, processes: 200, diskBytes: 2 ** 28 };
const hour = 3_600_000_000_000n;

/** R-16 at the launcher, against one of the launchers: real control groups, and nothing else of a worker. */
export function launchFenceContract(kind: LauncherKind): void {
  describe(`R-16: the launcher's deadline, ${kind}`, { skip: needsRoot, timeout: 120_000 }, () => {
    const groups = needsRoot === false ? new ControlGroups(`space-fence-${kind}-${process.pid}`) : undefined;
    let rig: LaunchRig;
    before(async () => {
      rig = await LaunchRig.open(kind);
    });
    after(async () => {
      for (const { name } of await rig.client.list()) await rig.client.kill(name);
      for (const name of (await groups?.list()) ?? []) await groups?.destroy(name);
      groups?.close();
      await rig.close();
    });

    const startIn = async (group: string): Promise<() => Promise<boolean>> => {
      assert.ok(groups !== undefined);
      await rig.client.start(rig.record({ cgroupFiles: groups.create(group, limits) }));
      return () => groups.isFrozen(group);
    };

    it("freezes every guest when it passes, thaws them when a later one is said, and only those", async () => {
      const isFrozen = await startIn("one");
      const isPaused = await startIn("paused");
      await groups?.freeze("paused");
      await rig.client.lease(bootTimeNanoseconds() + 300_000_000n);
      assert.equal(await isFrozen(), false, "not before");
      await eventually("frozen", isFrozen);
      const late = await startIn("late");
      await eventually("one that starts after it is frozen as well", late);
      await rig.client.lease(bootTimeNanoseconds() + hour);
      await eventually("both thawed", async () => !(await isFrozen()) && !(await late()));
      assert.equal(await isPaused(), true, "what a pause has frozen stays frozen");
    });

    it("a moment that has passed freezes at once; a guest that is frozen can be killed", async () => {
      const isFrozen = await startIn("two");
      await rig.client.lease(bootTimeNanoseconds() - 1n);
      await eventually("frozen", isFrozen);
      await rig.client.lease(bootTimeNanoseconds() + hour);
      await rig.client.lease(bootTimeNanoseconds() - 1n);
      await eventually("frozen", isFrozen);
      if (groups?.killsFrozen) for (const { name } of await rig.client.list()) await rig.client.kill(name);
      await rig.client.lease(bootTimeNanoseconds() + hour);
    });

    it("is refused where it says nothing", async () => {
      await assert.rejects(rig.client.lease(0n), (error) => error instanceof GuestError);
    });
  });
}
