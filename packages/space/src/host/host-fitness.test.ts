// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import { drivers } from "./drivers.ts";
import { type HostView, hostFacts, requireHost } from "./host-fitness.ts";

const fit: HostView = {
  userId: 0,
  kernel: "6.1.0-18-amd64",
  read: (path) => (path === "/proc/filesystems" ? "nodev\toverlay\n\text4\n" : "96364\n"),
  exists: () => true,
  program: (name) => `/usr/bin/${name}`,
};

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
  const say = (host: HostView, runsc: Parameters<typeof drivers>[2]) =>
    drivers(hostFacts(host), host, runsc).find(({ name }) => name === "gvisor");
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
