// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { encodeFrame, GuestFrame, type GuestProcess, stdinWindowBytes } from "@space/spaced-guest";
import { asUser, eventually, type TestGuest } from "../src/guest-host.ts";

const owner = { uid: 1000, gid: 1000 };

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

/** What happens when one side does not keep up, or goes away in the middle. */
export function pressureCases(guest: () => TestGuest): void {
  it("stops a process whose output nobody reads, holds little of it, and loses none", async () => {
    const total = 100_000_000;
    const connection = await guest().connect();
    const { pid: keeper } = guest().evidence.guest;
    const before = residentBytes(keeper);
    const started = Promise.withResolvers<GuestProcess>();
    let received = 0;
    const ended = new Promise<void>((onExit, onLost) => {
      const onStdout = (chunk: Buffer): void => {
        received += chunk.length;
      };
      const request = { ...asUser, argv: ["head", "-c", String(total), "/dev/zero"] };
      connection.spawn(request, { onStdout, onExit: () => onExit(), onLost }).then(started.resolve, onLost);
    });
    const process = await started.promise;
    process.pause();
    let last = -1;
    await eventually("it to stop", async () => {
      const now = Number(await guest().shell(`sed -n 's/^wchar: //p' /proc/${process.pid}/io`));
      const stopped = now > 0 && now === last;
      last = now;
      return stopped;
    });
    assert.ok(last < 8_000_000, `${last} bytes under way`);
    assert.ok(residentBytes(keeper) - before < 16 * 1024 * 1024);
    process.resume();
    await ended;
    assert.equal(received, total);
  });

  it("keeps what an interrupted write had sent, and goes on serving", async () => {
    const connection = await guest().connect();
    const writer = connection.writeStream("/tmp/interrupted", owner);
    writer.write(randomBytes(100_000));
    await eventually("the first part", () =>
      guest().using(async (other) => {
        const entry = await other.stat("/tmp/interrupted").catch(() => undefined);
        return entry?.sizeBytes === 100_000;
      }),
    );
    writer.abort();
    const entry = await guest().using((other) =>
      other.writeFile("/tmp/interrupted", owner, Buffer.from("again")),
    );
    assert.equal(entry.sizeBytes, 5);
  });

  it("serves others while many operations wait for readers that have stopped, or for nothing", async () => {
    await guest().shell("rm -f wait && mkfifo wait");
    const stuck = await Promise.all(Array.from({ length: 20 }, () => guest().connect()));
    for (const connection of stuck) {
      const handlers = { onEntry: () => undefined, onData: () => connection.pause() };
      connection.readStream("/dev/zero", {}, handlers).catch(() => undefined); // it ends with its connection
    }
    const fifos = await Promise.all(
      Array.from({ length: 8 }, () => guest().using((c) => c.readFile("/home/user/wait", 10))),
    );
    assert.ok(fifos.every((content) => content.length === 0));
    assert.equal(await guest().shell("echo served"), "served\n");
    for (const connection of stuck) connection.destroy();
  });

  it("closes on more stdin than the window, and kills the process", async () => {
    const connection = await guest().connect();
    const lost = new Promise<void>((resolve, reject) => {
      const request = { ...asUser, argv: ["sleep", "600"], stdin: true };
      connection
        .spawn(request, { onExit: () => reject(new Error("it ended by itself")), onLost: () => resolve() })
        .then(() => {
          const piece = encodeFrame(GuestFrame.stdin, Buffer.alloc(stdinWindowBytes / 2));
          for (let count = 0; count < 4; count += 1) connection.socket.write(piece);
        }, reject);
    });
    await lost;
    await eventually(
      "its end",
      async () => !(await guest().shell("ps -eo args || true")).includes("sleep 600"),
    );
  });
}
