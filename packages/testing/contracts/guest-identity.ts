// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { it } from "node:test";
import { GuestConnection, GuestConnectionError } from "@space/spaced-guest";
import { asUser, type GuestHost, type TestGuest, WatchedProcess } from "../src/guest-host.ts";
import { guestError } from "./guest-files.ts";

/** Another identity for the same processes, and what passes while it changes. */
export function identityCases(host: () => GuestHost): void {
  it("takes a new identity, closes the old connections, and hands its processes on", async () => {
    const guest = await host().start();
    const old = { activationId: guest.activationId as string, secret: guest.secret };
    const next = { activationId: "act_next", secret: randomBytes(32) };
    const running = await guest.connect();
    const first = await WatchedProcess.spawn(running, { ...asUser, argv: ["cat"], stdin: true });
    first.process?.writeStdin(Buffer.from("one\n"));
    await first.until(({ output }) => output === "one\n");
    const idle = await guest.connect();
    const control = await guest.connect();
    await assert.rejects(control.rekey({ ...old, secret: next.secret }, next), guestError("EACCES"));
    const closed = Promise.all(
      [running, idle].map((c) => new Promise<void>((resolve) => c.onClose(resolve))),
    );
    await control.rekey(old, next);
    await closed;
    assert.equal((await control.stat("/")).type, "directory");
    await assert.rejects(
      guest.connect(),
      (error) => error instanceof GuestConnectionError && error.fault === "unverified",
    );

    const again = await GuestConnection.connect(guest.evidence.socketPath, next);
    const before = first.process;
    assert.ok(before);
    first.process = await again.attach(before);
    first.process.writeStdin(Buffer.from("two\n"));
    await first.until(({ output }) => output === "one\ntwo\n");
    await assert.rejects(control.attach(before), guestError("ESRCH"), "it has an owner");
    first.process.closeStdin();
    await first.until(({ exit }) => exit !== undefined);
    assert.deepEqual(first.exit, { kind: "exited", code: 0 });
    await assert.rejects(control.attach(before), guestError("ESRCH"));
    await host().substrate.stop(guest.activationId);
  });

  for (const frozen of [false, true]) {
    const what = frozen ? "freeze-and-thaw pauses" : "new identities";
    it(`R-22: each byte passes once and in order, both ways, across 50 ${what}`, async () => {
      const guest = await host().start();
      const request = { ...asUser, argv: ["cat"], stdin: true };
      const watched = await WatchedProcess.spawn(await guest.connect(), request);
      const content = Array.from({ length: 60_000 }, (_, at) => `${at}\n`).join("");
      const step = Math.ceil(content.length / 50);
      let resent = 0;
      const pieces = Array.from({ length: 50 }, (_, at) => content.slice(at * step, (at + 1) * step));
      for (const piece of pieces) {
        // It is in every buffer between, and on its way back, while the identity changes; and some is written to a
        // connection that the guest has closed already.
        const third = Math.ceil(piece.length / 3);
        const thirds = [0, 1, 2].map((at) => Buffer.from(piece.slice(at * third, (at + 1) * third)));
        watched.process?.writeStdin(thirds[0] ?? Buffer.alloc(0));
        const { process, lost: before } = watched;
        let late: Buffer | undefined;
        const write = (at: 1 | 2): void => {
          if (watched.lost === before) process?.writeStdin(thirds[at] ?? Buffer.alloc(0));
          else late = thirds[at];
        };
        await takeAnotherIdentity(host(), guest, watched, { frozen, write });
        if (late !== undefined) watched.process?.writeStdin(late);
        resent += watched.process?.resentBytes ?? 0;
      }
      assert.ok(resent > 0, "nothing was lost on the way");
      watched.process?.closeStdin();
      await watched.until(({ exit }) => exit !== undefined, 30_000);
      assert.ok(watched.output === content, `${watched.output.length} of ${content.length} bytes`);
      await host().substrate.stop(guest.activationId);
    });
  }

  it("R-22: an exit while nobody is attached is told to who attaches, after the output before it", async () => {
    const guest = await host().start();
    const argv = ["sh", "-c", "read line; echo $line; exit 6"];
    const watched = await WatchedProcess.spawn(await guest.connect(), { ...asUser, argv, stdin: true });
    watched.process?.writeStdin(Buffer.from("bye\n"));
    await takeAnotherIdentity(host(), guest, watched, { frozen: false });
    await watched.until(({ exit }) => exit !== undefined);
    assert.deepEqual([watched.output, watched.exit], ["bye\n", { kind: "exited", code: 6 }]);
    await host().substrate.stop(guest.activationId);
  });
}

let names = 0;

/**
 * What worker and bridge do at a resume on the same worker, with one process running. `write` is called in the middle of
 * it: after the guest was asked to change, and after it has.
 */
export async function takeAnotherIdentity(
  host: GuestHost,
  guest: TestGuest,
  watched: WatchedProcess,
  how: { readonly frozen: boolean; readonly write?: (when: 1 | 2) => void },
): Promise<void> {
  if (how.frozen) {
    assert.ok(await host.substrate.freeze(guest.activationId));
    assert.ok(await host.substrate.thaw(guest.activationId));
  }
  const { process, lost } = watched;
  assert.ok(process);
  const old = guest.credentials;
  const control = await guest.connect();
  guest.credentials = { activationId: `act_other${names++}`, secret: randomBytes(32) };
  const renamed = control.rekey(old, guest.credentials);
  how.write?.(1);
  await renamed;
  how.write?.(2);
  await watched.until((now) => now.lost > lost || now.exit !== undefined);
  if (watched.exit === undefined) watched.process = await control.attach(process);
}
