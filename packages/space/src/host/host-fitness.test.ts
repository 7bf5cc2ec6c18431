// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import { drivers, type ToolStates } from "./drivers.ts";
import { type HostView, hostFacts, requireHost } from "./host-fitness.ts";

const fit: HostView = {
  userId: 0,
  kernel: "6.1.0-18-amd64",
  read: (path) => (path === "/proc/filesystems" ? "nodev\toverlay\n\text4\n" : "96364\n"),
  exists: () => true,
  program: (name) => `/usr/bin/${name}`,
};

const noCriu = { found: undefined, refused: [], fault: undefined };

test("a fit host lacks nothing", async () => {
  assert.deepEqual(
    hostFacts(fit).filter(({ state }) => state !== "ok"),
    [],
  );
  await requireHost("sandboxes start", fit);
});

const unfit: readonly [string, Partial<HostView>][] = [
  ["root", { userId: 1000 }],
  ["kernel", { kernel: "5.10.0" }],
  ["user namespaces", { read: (path) => (path === "/proc/filesystems" ? "overlay" : "0\n") }],
  ["overlay", { read: (path) => (path === "/proc/filesystems" ? "ext4" : "5\n") }],
  ["control groups", { exists: (path) => !path.startsWith("/sys") }],
  ["unshare", { program: (name) => (name === "unshare" ? undefined : name) }],
];

for (const [name, lack] of unfit) {
  test(`a host without ${name} is refused, and told what to do`, async () => {
    await assert.rejects(requireHost("sandboxes start", { ...fit, ...lack }), (error) => {
      assert.ok(isSpaceError(error, "host/unfit"));
      return error.details.problem.includes(name) && error.details.remedy !== "";
    });
  });
}

test("a host without the compiled launcher is slower, not unfit", async () => {
  const host: HostView = { ...fit, exists: (path) => !path.endsWith("spaced-launch") };
  assert.deepEqual(
    hostFacts(host)
      .filter(({ state }) => state !== "ok")
      .map(({ name, state }) => [name, state]),
    [["launcher", "slower"]],
  );
  await requireHost("sandboxes start", host);
});

test("gVisor works with a runsc that is not refused; otherwise it is said why, and what to do", () => {
  const say = (host: HostView, runsc: ToolStates["runsc"]) =>
    drivers(hostFacts(host), host, { runsc, criu: noCriu }).find(({ name }) => name === "gvisor");
  const refused = [{ path: "/usr/bin/runsc", reason: "runsc 20221219.0 go1.19.8: too old" }];
  const found = {
    path: "/tools/runsc",
    build: { release: "20240729.0", go: "1.22.1" },
    verdict: { kind: "tested" },
  } as const;
  assert.deepEqual(say(fit, { found, refused: [] }), {
    name: "gvisor",
    works: true,
    why: "/tools/runsc, runsc 20240729.0 go1.22.1",
  });
  const none = say(fit, { found: undefined, refused });
  assert.equal(none?.works, false);
  assert.match(none?.why ?? "", /runsc 20221219.0 go1.19.8: too old.*--install/);
  const slow: HostView = { ...fit, exists: (path) => !path.endsWith("spaced-launch") };
  assert.equal(say(slow, { found, refused: [] })?.works, false);
});

test("what there is of CRIU is said: none, one that is refused, one that fails here, one that works", () => {
  const say = (criu: Partial<ToolStates["criu"]>): string => {
    const runsc = { found: undefined, refused: [] };
    const [namespace] = drivers(hostFacts(fit), fit, { runsc, criu: { ...noCriu, ...criu } });
    assert.deepEqual([namespace?.name, namespace?.works], ["namespace", true]);
    return namespace?.why ?? "";
  };
  const found = {
    argv: [],
    path: "/tools/criu",
    version: "4.2.1",
    verdict: { kind: "tested" },
    untried: [],
  } as const;
  assert.match(say({}), /only while frozen.*--install/);
  const refused = [{ path: "/usr/sbin/criu", reason: "CRIU 4.1.1: it hangs" }];
  assert.match(say({ refused }), /\/usr\/sbin\/criu is refused: CRIU 4.1.1: it hangs.*--install/);
  assert.match(
    say({ found, fault: "criu dump: no" }),
    /only while frozen.*does not work here: criu dump: no$/,
  );
  assert.match(
    say({ found }),
    /^CRIU 4.2.1 \(\/tools\/criu\) works here: up --memory criu saves and moves memory$/,
  );
  const others = { ...found, untried: ["libc6 2.44-1"] };
  assert.match(say({ found: others }), /works here.*, with libc6 2.44-1 in place of what was tried$/);
});
