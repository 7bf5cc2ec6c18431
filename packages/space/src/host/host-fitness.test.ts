// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
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
