// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { type ExecutionExit, isSpaceError } from "@space/model";
import { asRoot, eventually, type GuestHost } from "../src/guest-host.ts";
import { fromChunks, save } from "../src/saved-guest.ts";

/** Makes a file below folders of these names, each entered before the next is made. */
const nested = (names: string, file: string): readonly string[] => [
  "python3",
  "-c",
  `import os\nfor name in ${names}:\n  os.mkdir(name); os.chdir(name)\nopen(${file}, "w").write("deep")`,
];

/** Where a guest has a layer on the host's disk, and owners there. */
export function layerCases(host: () => GuestHost): void {
  it("bounds memory and processes", async () => {
    const guest = await host().start({ memoryBytes: 64 * 1024 * 1024, processes: 30 });
    const hog = await guest.run(["perl", "-e", "my $x = 'x' x (200 * 1024 * 1024); print length $x"]);
    assert.notEqual(hog.stdout, String(200 * 1024 * 1024));
    const many = await guest.run(["sh", "-c", "for i in $(seq 60); do sleep 5 & done; echo unreachable"]);
    assert.match(many.stderr, /[Cc]annot fork|Resource temporarily unavailable/);
    assert.equal(await guest.using(async (c) => (await c.stat("/")).type), "directory");
    await host().substrate.stop(guest.activationId);
  });

  it("keeps a path as long as the kernel takes it, and refuses a longer one while the guest goes on", async () => {
    const guest = await host().start();
    // "./home/user/" and 20 folders of 200 bytes leave 63 of 4095.
    await guest.run([...nested('["n" * 200] * 20', '"f" * 63')]);
    const chunks = await save(host(), guest);
    const copy = await host().start({}, fromChunks(chunks));
    assert.equal(await copy.shell("find . -name 'fff*' -printf '%s\n'"), "4\n");
    await host().substrate.stop(copy.activationId);
    await host().substrate.thaw(guest.activationId);

    await guest.run([...nested('["d"] * 10000', '"leaf"')]);
    await assert.rejects(
      save(host(), guest),
      (error) => isSpaceError(error, "input/too-large") && error.details.limitBytes === 4095,
    );
    await host().substrate.thaw(guest.activationId);
    assert.equal(await guest.shell("rm -rf d; ls | cut -c1-3"), "nnn\n");
    assert.ok((await save(host(), guest)).length > 0);
    await host().substrate.stop(guest.activationId);
  });

  it("restores a layer exactly, under another range of user ids", async () => {
    const guest = await host().start();
    await guest.shell(
      "mkdir -p d/e && echo content > d/e/f && ln -s e d/l && ln d/e/f d/hard && chmod 640 d/e/f && touch -d 2001-02-03T04:05:06Z d/e/f",
    );
    await guest.shell(
      "mkfifo /tmp/fifo; rm -rf /opt /etc/issue; rm -rf /etc/vim; mkdir /etc/vim; echo mine > /etc/vim/mine; chmod 4755 /srv; truncate -s 50M /root/sparse",
      asRoot,
    );
    const look =
      "cd /; find home root tmp srv etc/vim opt etc/issue -printf '%p %y %m %U:%G %s %l %T@\\n' 2>&1 | grep -v 'root/.cache' | LC_ALL=C sort; cat home/user/d/e/f";
    const before = await guest.shell(`${look} || true`, asRoot);
    const chunks = await save(host(), guest);
    assert.ok(chunks.reduce((total, chunk) => total + chunk.length, 0) < 4 * 1024 * 1024); // holes stay holes
    await host().substrate.thaw(guest.activationId);
    const copy = await host().start({}, fromChunks(chunks));
    assert.equal(await copy.shell(`${look} || true`, asRoot), before);
    assert.equal(await copy.shell("stat -c %h /home/user/d/hard"), "2\n");
    await copy.shell("echo changed > d/e/f");
    assert.equal(await guest.shell("cat d/e/f"), "content\n");
    await host().substrate.stop(guest.activationId);
    // A second generation: what was restored is archived again.
    const again = await host().start({}, fromChunks(await save(host(), copy)));
    assert.equal(
      await again.shell("cat d/e/f; ls /etc/vim; test ! -e /opt && echo gone"),
      "changed\nmine\ngone\n",
    );
    await Promise.all([copy, again].map(({ activationId }) => host().substrate.stop(activationId)));
  });

  it("never lends a range twice, also after a restart", async () => {
    const first = await host().start();
    await host().restart();
    const second = await host().start();
    const owner = (activationId: string): number =>
      statSync(join(host().folder, "state/activations", activationId, "upper")).uid;
    assert.notEqual(owner(first.activationId), owner(second.activationId));
    assert.equal(await host().substrate.sweep(new Set()), 2);
  });

  it("ends a guest that has outgrown its disk", async () => {
    const exits: ExecutionExit[] = [];
    host().substrate.onExit((exit) => exits.push(exit));
    const guest = await host().start({ diskBytes: 64 * 1024 * 1024 });
    const single = await guest.run(["dd", "if=/dev/zero", "of=/tmp/one", "bs=1M", "count=100"]);
    assert.notDeepEqual(single.exit, { kind: "exited", code: 0 }); // no file beyond the limit at all
    await guest
      .run([
        "sh",
        "-c",
        "i=0; while :; do dd if=/dev/zero of=/tmp/$i bs=1M count=30 2>/dev/null; i=$((i+1)); done",
      ])
      .catch(() => undefined);
    await eventually("the end", () => exits.length > 0);
    assert.deepEqual(exits, [{ activationId: guest.activationId, reason: "disk limit exceeded" }]);
    await host().substrate.stop(guest.activationId);
  });
}
