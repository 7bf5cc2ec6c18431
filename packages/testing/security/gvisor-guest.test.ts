// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { asRoot, GuestHost, type TestGuest } from "../src/guest-host.ts";
import { needsRunsc } from "../src/needs-runsc.ts";

/** The barrier: the folder in which guest and host meet is the host's disk and the guest's own name. Its root wants in. */
describe("a guest's root under gVisor", { skip: needsRunsc, timeout: 60_000 }, () => {
  let host: GuestHost;
  let guest: TestGuest;
  before(async () => {
    host = await GuestHost.open("gvisor");
    guest = await host.start();
  });
  after(() => host.close());

  const attempts: readonly (readonly [what: string, script: string])[] = [
    ["the folder itself", "ls -A /run/space; echo x > /run/space/evil"],
    ["the mounts of pid 1", "for t in /proc/1/task/*; do ls -A $t/root/run/space $t/cwd/run/space; done"],
    ["a descriptor of pid 1", "for f in /proc/1/fd/*; do ls -A $f/; echo x > $f/evil; done"],
    ["the memory of pid 1", "head -c 1 /proc/1/mem; dd if=/proc/1/mem bs=1 count=1"],
    ["the mount namespace of pid 1", "nsenter -t 1 -m sh -c 'ls -A /run/space; echo x > /run/space/evil'"],
    [
      "a user namespace",
      "unshare -Urm sh -c 'umount /run/space; ls -A /run/space; echo x > /run/space/evil'",
    ],
    ["another mount of the root", "mkdir -p /tmp/m; mount --bind / /tmp/m; ls -A /tmp/m/run/space"],
  ];
  for (const [what, script] of attempts) {
    it(`reaches neither the host's folder nor its socket by ${what}`, async () => {
      const { stdout } = await guest.run(["sh", "-c", `{ ${script}; } 2>/dev/null`], asRoot);
      assert.equal(stdout, "");
      const folder = dirname(guest.evidence.socketPath);
      assert.deepEqual(readdirSync(folder), ["s"]);
      // What the host has put there: an empty place for the program of a driver that mounts one.
      const own = join(host.folder, "state/root/run/space");
      assert.deepEqual(readdirSync(own), ["guest"]);
      assert.equal(statSync(join(own, "guest")).size, 0);
    });
  }

  it("writes nothing to the host's disk, wherever it writes", async () => {
    await guest.shell("echo x > /evil; echo x > /run/evil; echo x >> /etc/passwd; rm -rf /home", asRoot);
    await assert.rejects(guest.shell("echo x > /usr/evil", asRoot));
    assert.equal(await guest.shell("cat /evil /run/evil", asRoot), "x\nx\n");
    const root = readdirSync(join(host.folder, "state/root"));
    assert.ok(!root.includes("evil") && root.includes("home"));
    assert.ok(!readdirSync("/usr").includes("evil"));
  });

  it("has a loopback and no other network", async () => {
    assert.equal(await guest.shell("grep -o '^ *[a-z0-9]*:' /proc/net/dev", asRoot), "    lo:\n");
  });
});
