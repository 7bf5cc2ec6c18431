// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type ExecutionExit, isSpaceError } from "@space/model";
import { evidenceMismatch, processEvidence, stillRuns } from "@space/platform-linux";
import { GuestConnection } from "@space/spaced-guest";
import { faultLanded } from "../src/fault-landed.ts";
import {
  asUser,
  eventually,
  GuestHost,
  type GuestHostKind,
  type TestGuest,
  testUids,
  WatchedProcess,
} from "../src/guest-host.ts";
import { needsFor } from "../src/needs-host.ts";
import { fromChunks } from "../src/saved-guest.ts";
import { layerCases } from "./substrate-layers.ts";

/**
 * Everything that an execution may leave on this host: processes, mounts, groups, files. Guests prepared in advance are
 * the driver's own; that it removes them too is checked at its end.
 */
function traces(host: GuestHost): Record<string, readonly string[]> {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const guestProcesses = pids.filter((pid) => {
    try {
      const { uid } = statSync(`/proc/${pid}`);
      // A spare one is no guest yet: it has not become its program.
      const isSpare = readFileSync(`/proc/${pid}/comm`, "utf8") === "spaced-launch\n";
      const inRange = !isSpare && uid >= testUids.first && uid < testUids.first + testUids.ranges * 65_536;
      return (
        inRange || readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(`/space-test-${process.pid}/act_`)
      );
    } catch {
      return false; // it has ended
    }
  });
  const groups = ["memory", "cpu", "pids", "unified", "freezer", ""].flatMap((controller) =>
    findGroups(join("/sys/fs/cgroup", controller), `space-test-${process.pid}`, 4),
  );
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(host.folder));
  return {
    processes: guestProcesses,
    groups: [...new Set(groups)].filter(notSpare).sort(),
    mounts,
    layers: readdirSync(join(host.folder, "state/activations")).filter(notSpare),
    sockets: readdirSync(join(host.folder, "s")).sort(),
  };
}

function notSpare(path: string): boolean {
  return !path.includes("spare-");
}

function findGroups(folder: string, name: string, depth: number): readonly string[] {
  if (depth === 0) return [];
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) =>
        entry.name === name
          ? readdirSync(join(folder, name), { withFileTypes: true })
              .filter((inner) => inner.isDirectory())
              .map((inner) => join(folder, name, inner.name))
          : findGroups(join(folder, entry.name), name, depth - 1),
      );
  } catch {
    return []; // no such hierarchy
  }
}

/** What differs between the drivers and their launchers. */
export interface SubstrateDifferences {
  readonly rounds: number;
  /** Each guest has a range of the host's user ids, and a layer on its disk. */
  readonly layers: boolean;
  /** Guests are prepared in advance. */
  readonly spares: boolean;
  /** What is told of a runtime whose recorded process was killed. */
  readonly killed: RegExp;
}

/** The substrate port's contract, for one driver with one of its launchers. */
export function substrateContract(kind: GuestHostKind, differences: SubstrateDifferences): void {
  const skip = needsFor(kind);
  describe(`substrate, ${kind}`, { skip, timeout: 120_000 }, () => {
    let host: GuestHost;
    before(async () => {
      host = await GuestHost.open(kind);
    });
    after(async () => {
      await host.close();
      const groups = ["memory", "cpu", "pids", "unified", "freezer", ""].flatMap((controller) =>
        findGroups(join("/sys/fs/cgroup", controller), `space-test-${process.pid}`, 4),
      );
      assert.deepEqual(groups, []);
    });
    lifeCases(() => host, differences);
    restartCases(() => host);
    failureCases(() => host, differences);
    if (differences.layers) layerCases(() => host);
  });
}

function lifeCases(host: () => GuestHost, { rounds, layers }: SubstrateDifferences): void {
  it("starts a guest that can be proved to be the one recorded", async () => {
    const guest = await host().start();
    const { evidence } = guest;
    assert.equal(evidenceMismatch(evidence.guest, processEvidence(evidence.guest.pid)), undefined);
    assert.ok(stillRuns(evidence.guest));
    assert.equal(await guest.shell("hostname"), "test-guest\n");
    assert.match(await guest.shell("cat /etc/passwd"), /^user:x:1000:1000:/m);
    assert.deepEqual(
      (await host().substrate.list()).map((running) => running.evidence),
      [evidence],
    );
    await host().substrate.stop(guest.activationId);
    assert.ok(!stillRuns(evidence.guest));
  });

  it("gives each guest its own files, processes, boot id and owners", async () => {
    const [one, two] = await Promise.all([host().start(), host().start()]);
    await one.shell("echo mine > /tmp/mine; sleep 600 & ");
    assert.equal((await two.run(["test", "-e", "/tmp/mine"])).exit.kind === "exited", true);
    assert.equal(await two.shell("ls /tmp"), "");
    assert.ok(!(await two.shell("ps -eo args || true")).includes("sleep 600"));
    const bootId = "cat /proc/sys/kernel/random/boot_id";
    assert.notEqual(await one.shell(bootId), await two.shell(bootId));
    const owner = ({ activationId }: TestGuest): number =>
      statSync(join(host().folder, "state/activations", activationId, "upper")).uid;
    if (layers) assert.ok(Math.abs(owner(one) - owner(two)) >= 65_536);
    await Promise.all([one, two].map(({ activationId }) => host().substrate.stop(activationId)));
  });

  it("freezes without losing memory, and thaws", async () => {
    const guest = await host().start();
    const connection = await guest.connect();
    const loop = "n=0; while :; do n=$((n+1)); echo $n; sleep 0.01; done";
    const watched = await WatchedProcess.spawn(connection, { ...asUser, argv: ["sh", "-c", loop] });
    await watched.until(({ output }) => output.includes("5\n"));
    assert.equal(await host().substrate.freeze(guest.activationId), true);
    const asked = guest.run(["true"]);
    let answered = false;
    void asked.then(() => {
      answered = true;
    });
    const before = watched.output.length;
    for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(answered, false);
    assert.ok(watched.output.length - before < 100); // at most what was on its way
    assert.equal(await host().substrate.thaw(guest.activationId), true);
    assert.deepEqual((await asked).exit, { kind: "exited", code: 0 });
    const seen = watched.output.length;
    await watched.until(({ output }) => output.length > seen);
    await host().substrate.stop(guest.activationId);
    assert.equal(await host().substrate.freeze(guest.activationId), false);
    assert.equal(await host().substrate.thaw(guest.activationId), false);
  });

  it("stops a frozen guest, and a second time, and an unknown one", async () => {
    const guest = await host().start();
    await host().substrate.freeze(guest.activationId);
    await host().substrate.stop(guest.activationId);
    await host().substrate.stop(guest.activationId);
    assert.ok(!stillRuns(guest.evidence.guest));
  });

  it("incident 22: leaves nothing behind after a storm of starts and stops", async () => {
    const before = traces(host());
    const left = (): number =>
      Object.values(traces(host())).flat().length - Object.values(before).flat().length;
    let made = 0;
    for (let round = 0; round < rounds; round += 1) {
      const guests = await Promise.all([1, 2, 3, 4].map(() => host().start()));
      await guests[0]?.shell("mkdir -p a/b/c; echo x > a/b/c/f; sleep 600 & (setsid sleep 600 &)");
      made += left() > 2 * guests.length ? 1 : 0;
      await Promise.all(guests.map(({ activationId }) => host().substrate.stop(activationId)));
    }
    faultLanded("in each round there was something to leave behind", made - (rounds - 1));
    assert.deepEqual(traces(host()), before);
  });
}

function restartCases(host: () => GuestHost): void {
  it("adopts what runs after a daemon's restart, and ends what nobody wants", async () => {
    const before = traces(host());
    const kept = await host().start();
    const orphan = await host().start();
    await host().substrate.freeze(orphan.activationId);
    await host().restart();
    const found = await host().substrate.list();
    assert.deepEqual(
      new Set(found.map(({ activationId }) => activationId)),
      new Set([kept.activationId, orphan.activationId]),
    );
    assert.deepEqual(
      found.find(({ activationId }) => activationId === kept.activationId)?.evidence,
      kept.evidence,
    );
    assert.equal(await host().substrate.sweep(new Set([kept.activationId])), 1);
    assert.ok(!stillRuns(orphan.evidence.guest));
    assert.equal(await kept.shell("echo still here"), "still here\n");
    assert.equal(await host().substrate.freeze(kept.activationId), true);
    assert.equal(await host().substrate.thaw(kept.activationId), true);
    await host().substrate.stop(kept.activationId);
    assert.deepEqual(traces(host()), before);
  });
}

function failureCases(host: () => GuestHost, { killed, spares }: SubstrateDifferences): void {
  it("refuses a damaged archive and leaves nothing of it", async () => {
    const before = traces(host());
    const damaged = [Buffer.alloc(10_240, 0x41)];
    await assert.rejects(host().start({}, fromChunks(damaged)), (error) =>
      isSpaceError(error, "snapshot/refused"),
    );
    async function* breaks(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(512);
      throw new Error("the store is gone");
    }
    await assert.rejects(host().start({}, breaks()));
    assert.deepEqual(traces(host()), before);
  });

  it("reports a runtime that ended by itself", async () => {
    const exits: ExecutionExit[] = [];
    host().substrate.onExit((exit) => exits.push(exit));
    const guest = await host().start();
    process.kill(guest.evidence.guest.pid, "SIGKILL");
    await eventually("the exit", () => exits.length > 0);
    assert.deepEqual(
      exits.map(({ activationId }) => activationId),
      [guest.activationId],
    );
    assert.match(exits[0]?.reason ?? "", killed);
    await host().substrate.stop(guest.activationId);
  });

  it("leaves nothing of a start that fails, and frees its range", async () => {
    const before = traces(host());
    for (let round = 0; round < 20; round += 1) {
      const tooLong = { hostname: "x".repeat(65) };
      await assert.rejects(host().startWith(tooLong), (error) => isSpaceError(error, "substrate/failed"));
    }
    assert.deepEqual(traces(host()), before);
  });

  it("starts although a guest that was prepared has died", { skip: !spares }, async () => {
    const prepared = async () =>
      (await host().substrate.launchClient.list()).filter(({ name }) => name.startsWith("spare-"));
    await eventually("the spares", async () => (await prepared()).length >= 4);
    for (const { hostPid } of await prepared()) process.kill(hostPid, "SIGKILL");
    const guest = await host().start();
    assert.equal(await guest.shell("echo up"), "up\n");
    await host().substrate.stop(guest.activationId);
  });

  it("survives the launcher's death: says so, leaves no guest, starts again", async () => {
    const exits: ExecutionExit[] = [];
    host().substrate.onExit((exit) => exits.push(exit));
    const guest = await host().start();
    const parent = /^PPid:\t(\d+)$/m.exec(
      readFileSync(`/proc/${guest.evidence.guest.pid}/status`, "utf8"),
    )?.[1];
    process.kill(Number(parent), "SIGKILL");
    await eventually("the exit", () => exits.length > 0);
    await eventually("the guest's end", () => !stillRuns(guest.evidence.guest));
    await host().substrate.stop(guest.activationId);
    const next = await host().start();
    assert.equal(await next.shell("echo up"), "up\n");
    await assert.rejects(
      GuestConnection.connect(guest.evidence.socketPath, {
        activationId: guest.activationId,
        secret: guest.secret,
      }),
    );
    await host().substrate.stop(next.activationId);
  });
}
