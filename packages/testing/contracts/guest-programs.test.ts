// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { nativeLauncherPath } from "@space/spaced-guest";
import { asRoot, GuestHost, type RunOptions, type TestGuest } from "../src/guest-host.ts";
import { needsRoot } from "../src/needs-root.ts";

interface Program {
  readonly path: string;
  readonly script: string;
  readonly says: string;
  readonly as?: RunOptions;
}

/** Each uses what the guests' filter might have taken from it by mistake: threads, forks, sockets, terminals, watches. */
const programs: readonly Program[] = [
  {
    path: "/usr/bin/bash",
    script: `exec bash -c 'shopt -s lastpipe; echo a | read x; coproc cat; echo $x >&\${COPROC[1]}; read y <&\${COPROC[0]}; echo $y > /dev/stdout'`,
    says: "a\n",
  },
  {
    path: "/usr/bin/python3",
    script: `exec /usr/bin/python3 -c 'import threading, subprocess, socket, os, tempfile
t = threading.Thread(target=lambda: None); t.start(); t.join()
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); c = socket.create_connection(s.getsockname())
a, b = socket.socketpair(); os.close(os.openpty()[0]); tempfile.TemporaryFile()
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip(), socket.if_nameindex()[0][1])'`,
    says: "child lo\n",
  },
  {
    path: "/usr/bin/node",
    script: `exec /usr/bin/node -e 'const { Worker } = require("node:worker_threads"); const fs = require("node:fs");
fs.watch("/tmp").close(); require("node:os").networkInterfaces();
new Worker("require(\\"node:fs\\").promises.readFile(\\"/etc/passwd\\").then((b) => require(\\"node:worker_threads\\").parentPort.postMessage(b.length > 0))", { eval: true })
  .on("message", (m) => console.log(m, require("node:child_process").execSync("echo shell").toString().trim()))'`,
    says: "true shell\n",
  },
  {
    path: "/usr/bin/git",
    script:
      "mkdir repo && cd repo && git init -q . && echo a > f && git add f && git -c user.name=a -c user.email=a@b commit -qm one && git log --format=%s",
    says: "one\n",
  },
  {
    path: "/usr/bin/gcc",
    script: `printf '#include <pthread.h>\\n#include <stdio.h>\\nstatic void *f(void *p) { return p; }\\nint main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); puts("built"); }' > p.c && gcc -pthread p.c -o p && ./p`,
    says: "built\n",
  },
  {
    path: "/usr/sbin/useradd",
    script: "useradd --no-log-init newcomer && id -un newcomer", // asks audit's netlink first
    says: "newcomer\n",
    as: asRoot,
  },
];

describe("programs in a guest", { skip: needsRoot, timeout: 60_000 }, () => {
  let host: GuestHost;
  let guest: TestGuest;
  before(async () => {
    host = await GuestHost.open(existsSync(nativeLauncherPath) ? "native" : "portable");
    guest = await host.start({ processes: 128 });
  });
  after(() => host.close());
  for (const { path, script, says, as } of programs) {
    it(`runs ${path}`, { skip: existsSync(path) ? false : "not on this host" }, async () => {
      assert.equal(await guest.shell(script, as ?? {}), says);
    });
  }
});
