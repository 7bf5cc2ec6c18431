// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  encodeFrame,
  GuestError,
  type LaunchClient,
  type LaunchExit,
  nativeLauncherPath,
  type StartRecord,
} from "@space/spaced-guest";
import type { LauncherKind } from "@space/substrate-namespace";
import { eventually, GuestHost, needsRoot, testUids } from "../src/guest-host.ts";

const launchers: readonly LauncherKind[] = existsSync(nativeLauncherPath)
  ? ["native", "portable"]
  : ["portable"];

for (const launcher of launchers) {
  describe(`launch protocol, ${launcher}`, { skip: needsRoot, timeout: 60_000 }, () => {
    let host: GuestHost;
    let client: LaunchClient;
    before(async () => {
      host = await GuestHost.open(launcher);
      client = host.substrate.launchClient;
    });
    after(() => host.close());

    // A name is free again when its process is reaped, which may be after the answer.
    let probes = 0;
    const record = (change: Partial<StartRecord>): StartRecord => ({
      activationId: `probe-${++probes}`,
      secret: Buffer.alloc(32),
      socketPath: join(host.folder, `s/probe-${probes}`),
      socketUid: 0,
      uidBase: testUids.first,
      hostname: "probe",
      lowerDir: join(host.folder, "state/skeleton"),
      upperDir: join(host.folder, "nowhere"),
      workDir: join(host.folder, "nowhere"),
      rootDir: join(host.folder, "state/mount-point"),
      binds: [],
      bootId: "0",
      cgroupFiles: [],
      tmpfsLimitBytes: 1024 * 1024,
      fileLimitBytes: 0,
      ...change,
    });

    it("answers a start that fails with its errno and step, and leaves no child", async () => {
      const failing: readonly [Partial<StartRecord>, string][] = [
        [{}, "ENOENT"],
        [{ cgroupFiles: ["/sys/fs/cgroup/no-such-group/cgroup.procs"] }, "cgroup"], // the step: a shell that writes it knows no errno
        [{ socketPath: `/tmp/${"x".repeat(120)}` }, "ENAMETOOLONG"],
        [{ activationId: "" }, "EINVAL"],
        [{ uidBase: 0 }, "EINVAL"],
        [{ binds: [{ source: join(host.folder, "gone"), target: "usr", readOnly: true }] }, "ENOENT"],
      ];
      for (const [change, expected] of failing) {
        await assert.rejects(
          client.start(record(change)),
          (error) => error instanceof GuestError && (error.code === expected || error.step === expected),
          JSON.stringify(change),
        );
      }
      await eventually(
        "no child",
        async () => !(await client.list()).some(({ name }) => name.startsWith("probe")),
      );
    });

    it("lists what runs with pid and start time, refuses a name in use, and tells every client of an end", async () => {
      const guest = await host.start();
      const found = (await client.list()).find(({ name }) => name === guest.activationId);
      assert.deepEqual(
        [found?.hostPid, String(found?.startTime), found?.running],
        [guest.evidence.guest.pid, guest.evidence.guest.startTime, true],
      );
      await assert.rejects(
        client.start(record({ activationId: guest.activationId })),
        (error) => error instanceof GuestError && error.code === "EEXIST",
      );
      const ends: LaunchExit[] = [];
      const forget = client.onExit((exit) => ends.push(exit));
      await client.kill(guest.activationId);
      assert.deepEqual(
        ends.filter(({ name }) => name === guest.activationId),
        [{ name: guest.activationId, hostPid: guest.evidence.guest.pid, waitStatus: 9 }],
      );
      forget();
      await host.substrate.stop(guest.activationId);
    });

    it("kills the unknown with success", async () => {
      await client.kill("never-was");
    });

    it("starts a bridge without rights, under its own user, and ends it", async () => {
      const stderrPath = join(host.folder, "state/bridge.log");
      const script =
        "id >&2; cat /proc/self/status >&2; tail -n +3 /proc/net/dev >&2; ls /proc/self/fd >&2; exec sleep 600";
      const uid = testUids.first + 7;
      const argv = ["/bin/sh", "-c", script];
      const { hostPid } = await client.host({
        ...{ name: "bridge", uid, gid: uid, argv, env: { PATH: "/usr/bin:/bin" } },
        ...{ stderrPath, binds: [] },
      });
      await eventually("its words", () => readFileSync(stderrPath, "utf8").includes("lo:"));
      const said = readFileSync(stderrPath, "utf8");
      assert.match(said, new RegExp(`uid=${uid}`));
      assert.match(said, /CapEff:\t0+\n/);
      assert.match(said, /CapBnd:\t0+\n/);
      assert.match(said, /NoNewPrivs:\t1\n/);
      assert.match(said, /Groups:\t *\n/);
      assert.doesNotMatch(said, /eth|ens|enp/);
      await client.kill("bridge");
      assert.ok(!existsSync(`/proc/${hostPid}`));
    });

    it("reports a bridge whose program is not there", async () => {
      const bridge = { uid: testUids.first, gid: testUids.first, argv: ["/no/such"], env: {}, binds: [] };
      await assert.rejects(
        client.host({ ...bridge, name: "none", stderrPath: "/dev/null" }),
        (error) => error instanceof GuestError && error.code === "ENOENT",
      );
    });

    it("drops a client that breaks the protocol, and goes on", async () => {
      for (const bytes of [encodeFrame(99), Buffer.alloc(64, 255)]) {
        await new Promise<void>((resolve) => {
          const socket = connect(join(host.folder, "s/launch"));
          socket.on("error", () => undefined); // reset is as good as closed
          socket.on("close", () => resolve());
          socket.write(bytes);
          socket.resume();
        });
      }
      await client.list();
    });
  });
}
