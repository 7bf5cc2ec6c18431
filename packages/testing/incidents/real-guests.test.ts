// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Incidents of real guests: real processes, control groups and file systems.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { after, before, test } from "node:test";
import { stillRuns } from "@space/platform-linux";
import { nativeLauncherPath } from "@space/spaced-guest";
import { faultLanded } from "../src/fault-landed.ts";
import { asUser, eventually, GuestHost, type TestGuest, WatchedProcess } from "../src/guest-host.ts";
import { needsRoot } from "../src/needs-root.ts";

const skip = needsRoot || (existsSync(nativeLauncherPath) ? false : "the native launcher is not built");
let host: GuestHost;

before(async () => {
  if (skip === false) host = await GuestHost.open("native");
});
after(async () => {
  if (skip === false) await host.close();
});

/** The host's pids of everything that runs in the guest, wherever its own process tree put it. */
function pidsIn({ evidence }: TestGuest): readonly number[] {
  const space = namespaceOf(evidence.guest.pid);
  const pids = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  return space === "" ? [] : pids.map(Number).filter((pid) => namespaceOf(pid) === space);
}

function namespaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return ""; // it has ended
  }
}

/** The folders of the control group that a process is in, in every hierarchy that knows the group by its own name. */
function groupFolders(pid: number): readonly string[] {
  const lines = readFileSync(`/proc/${pid}/cgroup`, "utf8").trim().split("\n");
  const found = lines.flatMap((line) => {
    const [, controllers = "", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", ...controllers.split(",").map(hierarchyOf)];
    return path === "/" ? [] : roots.map((root) => `${root}${path}`);
  });
  return [...new Set(found)].filter((folder) => pidsOf(folder).includes(pid));
}

function hierarchyOf(controller: string): string {
  return `/sys/fs/cgroup/${controller}`;
}

function pidsOf(folder: string): readonly number[] {
  const file = `${folder}/cgroup.procs`;
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : [];
}

/** Processor time that a process has used, in clock ticks. */
function usedTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

test("incident 12: children that outlive a killed command are frozen by a pause, and none outlives the sandbox", {
  skip,
}, async () => {
  const guest = await host.start();
  const connection = await guest.connect();
  const stubborn = "trap '' TERM HUP INT QUIT; echo ready; while :; do :; done";
  const command = `setsid sh -c "${stubborn}" & (setsid setsid sh -c "${stubborn}" &) & sleep 1000`;
  const watched = await WatchedProcess.spawn(connection, { ...asUser, argv: ["sh", "-c", command] });
  await watched.until(({ output }) => output.split("ready").length === 3);
  watched.process?.signal(9);
  await watched.until(({ exit }) => exit !== undefined);
  const children = pidsIn(guest).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("trap"),
  );
  faultLanded("both children outlived the command that was killed", children.length - 1);

  assert.equal(await host.substrate.freeze(guest.activationId), true);
  const frozenAt = children.map(usedTicks);
  const untilMs = performance.now() + 100; // ten ticks of a processor
  while (performance.now() < untilMs) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(children.map(usedTicks), frozenAt, "no child runs on in the pause");
  assert.equal(await host.substrate.thaw(guest.activationId), true);
  await eventually("the children run again", () =>
    children.map(usedTicks).every((used, at) => used > (frozenAt[at] ?? 0)),
  );

  const all = pidsIn(guest);
  const folders = groupFolders(children[0] ?? 0);
  faultLanded("the children were in a group that the kernel lists", folders.length);
  await host.substrate.stop(guest.activationId);
  // The kernel removes no group that holds a process: that it is gone is the proof, and nothing else is one.
  assert.deepEqual(folders.filter(existsSync), [], "the stop returns when the group is gone");
  assert.ok(!stillRuns(guest.evidence.guest));
  assert.deepEqual(
    all.filter((pid) => namespaceOf(pid) !== ""),
    [],
    "and none of its processes is left",
  );
});
