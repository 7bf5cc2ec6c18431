// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { asUser, type GuestHost, type TestGuest, WatchedProcess } from "../src/guest-host.ts";
import { guestError } from "./guest-files.ts";
import { takeAnotherIdentity } from "./guest-identity.ts";

/** Terminals, where the launcher has them. */
export function terminalCases(host: () => GuestHost, guest: () => TestGuest, supported: boolean): void {
  it("opens a terminal of the given size, resizes it, and types into it", { skip: !supported }, async () => {
    const connection = await guest().connect();
    const request = { ...asUser, argv: ["sh"], pty: { cols: 91, rows: 17 } };
    const watched = await WatchedProcess.spawn(connection, request);
    watched.process?.writeStdin(Buffer.from("stty size; tty\n"));
    await watched.until(({ output }) => output.includes("17 91") && output.includes("/dev/pts/"));
    watched.process?.resize(40, 30);
    watched.process?.writeStdin(Buffer.from("stty size; exit 5\n"));
    await watched.until(({ exit }) => exit !== undefined);
    assert.match(watched.output, /30 40/);
    assert.deepEqual(watched.exit, { kind: "exited", code: 5 });
  });

  it("R-22: 10 KB typed into a terminal across 50 freeze-and-thaw pauses: each byte once and in order", {
    skip: !supported,
  }, async () => {
    const own = await host().start();
    const argv = ["sh", "-c", "stty raw -echo; echo ready; exec cat"];
    const request = { ...asUser, argv, pty: { cols: 80, rows: 24 } };
    const watched = await WatchedProcess.spawn(await own.connect(), request);
    await watched.until(({ output }) => output.includes("ready"));
    watched.output = "";
    const typed = Array.from({ length: 2048 }, (_, at) => at.toString(32).padStart(5, ".")).join("");
    assert.equal(typed.length, 10_240);
    const pauses = 50;
    let resent = 0;
    const step = Math.ceil(typed.length / pauses);
    for (let pause = 0; pause < pauses; pause += 1) {
      const keys = typed.slice(pause * step, (pause + 1) * step);
      const half = keys.length / 2;
      for (const key of keys.slice(0, half)) watched.process?.writeStdin(Buffer.from(key));
      const write = (when: 1 | 2): void => {
        if (when === 1) for (const key of keys.slice(half)) watched.process?.writeStdin(Buffer.from(key));
      };
      await takeAnotherIdentity(host(), own, watched, { frozen: true, write });
      resent += watched.process?.resentBytes ?? 0;
    }
    await watched.until(({ output }) => output.length >= typed.length);
    assert.equal(watched.output, typed);
    assert.ok(resent > 0, "nothing was lost on the way");
    await host().substrate.stop(own.activationId);
  });

  it("keeps its size across a new identity, also one set while it changed", {
    skip: !supported,
  }, async () => {
    const own = await host().start();
    const request = { ...asUser, argv: ["sh"], pty: { cols: 80, rows: 24 } };
    const watched = await WatchedProcess.spawn(await own.connect(), request);
    watched.process?.resize(101, 51);
    await takeAnotherIdentity(host(), own, watched, { frozen: true });
    watched.process?.writeStdin(Buffer.from("stty size\n"));
    await watched.until(({ output }) => output.includes("51 101"));
    await host().substrate.stop(own.activationId);
  });

  it("says that it has no terminals", { skip: supported }, async () => {
    await guest().using((connection) =>
      assert.rejects(
        connection.spawn(
          { ...asUser, argv: ["sh"], pty: { cols: 80, rows: 24 } },
          { onExit: () => assert.fail("it ran"), onLost: () => undefined },
        ),
        guestError("ENOSYS"),
      ),
    );
  });
}
