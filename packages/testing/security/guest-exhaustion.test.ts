// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Written as the guest: it uses up what it has, and forges what it leaves behind. Its keeper, its neighbours and the host
// must not suffer.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { nativeLauncherPath } from "@space/spaced-guest";
import type { LauncherKind } from "@space/substrate-namespace";
import { faultLanded } from "../src/fault-landed.ts";
import { asRoot, asUser, eventually, GuestHost, type TestGuest, WatchedProcess } from "../src/guest-host.ts";
import { needsRoot } from "../src/needs-root.ts";

const launchers: readonly LauncherKind[] = existsSync(nativeLauncherPath)
  ? ["native", "portable"]
  : ["portable"];
const perl = (code: string): readonly string[] => ["perl", "-e", code];

for (const launcher of launchers) {
  describe(`a greedy guest, ${launcher}`, { skip: needsRoot, timeout: 120_000 }, () => {
    let host: GuestHost;
    before(async () => {
      host = await GuestHost.open(launcher);
    });
    after(() => host.close());
    exhaustion(() => host, launcher);
    snapshots(() => host);
  });
}

/** How often the kernel refused the guest another process. */
function refusedForks({ evidence }: TestGuest): number {
  const path = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(
    (root) => `${root}/${groupOf(evidence.guest.pid)}`,
  );
  const events = path.map((folder) => `${folder}/pids.events`).find((file) => existsSync(file));
  return events === undefined ? 0 : Number(/^max (\d+)$/m.exec(readFileSync(events, "utf8"))?.[1]);
}

function groupOf(pid: number): string {
  const text = readFileSync(`/proc/${pid}/cgroup`, "utf8");
  return (/^\d+:(?:[^:]*,)?pids(?:,[^:]*)?:\/(.*)$/m.exec(text) ?? /^0::\/(.*)$/m.exec(text))?.[1] ?? "";
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await action();
  return Math.round(performance.now() - beganMs);
}

function exhaustion(host: () => GuestHost, launcher: LauncherKind): void {
  it("incident 29: is still served during a fork storm, and its neighbour does not notice", async (context) => {
    const [bomb, neighbour] = [await host().start({ processes: 40 }), await host().start()];
    const alone = await timed(() => neighbour.shell("echo fine"));
    const ready = await bomb.connect(); // spaced-host keeps verified connections ready
    const watched = await WatchedProcess.spawn(await bomb.connect(), {
      ...asUser,
      argv: perl("$SIG{CHLD} = 'IGNORE'; print STDOUT 'go'; $| = 1; while (1) { fork }"),
    });
    await eventually(
      "the limit",
      async () => (await ready.list("/proc")).filter((e) => /^\/proc\/\d+$/.test(e.path)).length > 25,
    );
    await eventually("the limit is hit", () => refusedForks(bomb) > 0);
    const storm = refusedForks(bomb);
    assert.equal((await ready.stat("/")).type, "directory");
    assert.equal(await neighbour.shell("echo fine"), "fine\n");
    const beside = await timed(() => neighbour.shell("echo fine"));
    await eventually("the storm goes on", () => refusedForks(bomb) > storm);
    faultLanded("the storm was at its limit before and after both were served", refusedForks(bomb) - storm);
    context.diagnostic(`a neighbour's command: ${alone} ms alone, ${beside} ms beside the storm`);
    await eventually("the bomb's end", async () => {
      await ready.killAll(9);
      return (
        watched.exit !== undefined &&
        (await ready.list("/proc")).filter((e) => /^\/proc\/\d+$/.test(e.path)).length <= 1
      );
    });
    assert.equal(await bomb.shell("echo recovered"), "recovered\n");
    await Promise.all([bomb, neighbour].map(({ activationId }) => host().substrate.stop(activationId)));
  });

  it("uses up what the kernel counts by user, and leaves its neighbour as much", async () => {
    const guests = [await host().start(), await host().start()] as const;
    const call = process.arch === "arm64" ? 26 : 294; // inotify_init1
    const take = (most: number): readonly string[] =>
      perl(`$| = 1; my $n = 0; $n++ while $n < ${most} && syscall(${call}, 0) >= 0; print "$n got\n"; sleep`);
    const hog = await WatchedProcess.spawn(await guests[0].connect(), { ...asUser, argv: take(100_000) });
    await hog.until(({ output }) => output.includes("got"));
    faultLanded("the kernel gave the hog some, and then no more", Number.parseInt(hog.output, 10) % 100_000);
    const other = await WatchedProcess.spawn(await guests[1].connect(), { ...asUser, argv: take(20) });
    await other.until(({ output }) => output.includes("got"));
    assert.equal(other.output, "20 got\n");
    await Promise.all(guests.map(({ activationId }) => host().substrate.stop(activationId)));
  });

  it("incident 29: loses a process, not its pid 1, to an empty memory", async () => {
    const guest = await host().start({ memoryBytes: 48 * 1024 * 1024 });
    let killed = 0;
    for (const user of [asUser, asRoot]) {
      const hog = "my @x; while (1) { push @x, 'x' x 1000000 }";
      const { exit } = await guest.run(perl(hog), user);
      assert.notDeepEqual(exit, { kind: "exited", code: 0 });
      killed += exit.kind === "signalled" && exit.signal === 9 ? 1 : 0;
    }
    faultLanded("the kernel killed a hog of each user", killed - 1);
    assert.equal(await guest.shell("echo alive"), "alive\n");
    await host().substrate.stop(guest.activationId);
  });

  it("cannot make its pid 1 hold output that nobody reads", async () => {
    const guest = await host().start();
    const resident = (): number =>
      Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${guest.evidence.guest.pid}/status`, "utf8"))?.[1]);
    const connection = await guest.connect();
    const watched = await WatchedProcess.spawn(connection, {
      ...asUser,
      argv: ["sh", "-c", "head -c 1000000000 /dev/zero; echo done >&2"],
    });
    watched.process?.pause();
    for (let round = 0; round < 50; round += 1) await guest.using((c) => c.stat("/"));
    assert.ok(resident() < (launcher === "native" ? 8 : 96) * 1024, `${resident()} KiB`);
    assert.equal(await guest.shell("echo served"), "served\n");
    connection.destroy();
    await eventually("its end", async () => !(await guest.shell("ps -eo args || true")).includes("head -c"));
    await host().substrate.stop(guest.activationId);
  });

  it("cannot hide from its disk limit, nor make its removal fail", async () => {
    const guest = await host().start();
    const deep =
      "my $n = 'd' x 250; for (1 .. 60) { mkdir $n; chdir $n or die } open my $f, '>', 'end'; chmod 0, '.';";
    await guest.run(perl(deep), { ...asRoot, cwd: "/home/user" });
    await guest.shell(
      "mkdir /tmp/locked && chmod 000 /tmp/locked && i=0; while [ $i -lt 300 ]; do mkfifo /tmp/f$i; i=$((i+1)); done",
      asRoot,
    );
    await host().substrate.stop(guest.activationId);
    assert.ok(!existsSync(`${host().folder}/state/activations/${guest.activationId}`));
  });
}

function snapshots(host: () => GuestHost): void {
  const forged = async (build: string): Promise<AsyncIterable<Uint8Array>> => {
    const maker = await host().start();
    await maker.shell(`mkdir /tmp/x && cd /tmp/x && ${build}`, asRoot);
    const bytes = await maker.using((c) => c.readFile("/tmp/x/forged.tar", 10_000_000));
    await host().substrate.stop(maker.activationId);
    return (async function* () {
      yield bytes;
    })();
  };

  it("cannot redirect the keeper's mounts by a forged layer", async () => {
    for (const name of ["proc", "dev", "usr"]) {
      const archive = await forged(`mkdir l && ln -s /tmp l/${name} && tar -C l -cf forged.tar .`);
      await assert.rejects(host().start({}, archive), `/${name} as a symlink`);
    }
  });

  it("cannot write outside the layer by a forged archive", async () => {
    const target = `/tmp/space-escape-${process.pid}`;
    const archives = [
      `echo evil > f && tar -cPf forged.tar --transform 's,^f$,../../../../../../../..${target},' f`,
      `echo evil > f && tar -cPf forged.tar --transform 's,^f$,${target},' f`,
      `ln -s /tmp link && tar -cf forged.tar link && rm link && mkdir link && echo evil > link/space-escape-${process.pid} && tar -rf forged.tar link/space-escape-${process.pid}`,
    ];
    for (const build of archives) {
      const archive = await forged(build);
      await host()
        .start({}, archive)
        .then(
          (guest) => host().substrate.stop(guest.activationId),
          () => undefined, // refused is as good as confined
        );
      assert.ok(!existsSync(target), build);
      rmSync(target, { force: true });
    }
  });
}
