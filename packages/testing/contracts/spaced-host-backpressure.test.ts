// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { FakeProcess } from "../src/fake-process.ts";
import { enveloped, HostRig } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const start = "process.Process/Start";

/** Prints without end, as fast as it can; counts what the pipe has taken. */
function flood(written: { bytes: number }) {
  return async (process: FakeProcess): Promise<void> => {
    const chunk = Buffer.alloc(32 * 1024, "x");
    while (!process.exited) {
      await process.output("stdout", chunk);
      written.bytes += chunk.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
}

it("a reader that does not read stops its process, and nobody else", async () => {
  const rig = await HostRig.adopted();
  const written = { bytes: 0 };
  rig.guest.programs.set("flood", (process) => void flood(written)(process));
  const slow = rig.open("POST", `/${start}`, {
    headers: { "content-type": "application/connect+json" },
    body: enveloped(JSON.stringify({ process: { cmd: "flood" } })),
  });
  slow.reading = false;
  await settle(300);
  const stalledAt = written.bytes;
  await settle(100);
  assert.equal(written.bytes, stalledAt, "the process waits");
  assert.ok(slow.body.length < 1_500_000, `${slow.body.length} bytes were sent`);
  rig.guest.programs.set("echo", (process) => process.exit(0));
  const other = await rig.stream(start, { process: { cmd: "echo", args: ["quick"] } });
  assert.equal(other.ended, true);
  slow.read();
  await settle(100);
  assert.ok(written.bytes > stalledAt, "and goes on when it reads");
  rig.close();
});

it("a process whose only reader is stuck can still be killed", async () => {
  const rig = await HostRig.adopted();
  rig.guest.programs.set("flood", (process) => void flood({ bytes: 0 })(process));
  const stuck = rig.open("POST", `/${start}`, {
    headers: { "content-type": "application/connect+json" },
    body: enveloped(JSON.stringify({ process: { cmd: "flood" } })),
  });
  stuck.reading = false;
  await settle(300);
  const process = { pid: rig.guest.started[0]?.pid };
  const kill = await rig.rpc("process.Process/SendSignal", { process, signal: "SIGNAL_SIGKILL" });
  assert.deepEqual(kill.json(), {});
  stuck.read();
  await settle(100);
  assert.deepEqual(stuck.messages().slice(-2), [
    { event: { end: { exitCode: -1, status: "signal: killed", error: "signal: killed" } } },
    { end: {} },
  ]);
  rig.close();
});

it("a reader that takes nothing for 30 s while another could go on is ended", async () => {
  const rig = await HostRig.adopted();
  const written = { bytes: 0 };
  rig.guest.programs.set("flood", (process) => void flood(written)(process));
  const good = rig.open("POST", `/${start}`, {
    headers: { "content-type": "application/connect+json" },
    body: enveloped(JSON.stringify({ process: { cmd: "flood" } })),
  });
  await settle(10);
  const stuck = rig.open("POST", "/process.Process/Connect", {
    headers: { "content-type": "application/connect+json" },
    body: enveloped(JSON.stringify({ process: { pid: rig.guest.started[0]?.pid } })),
  });
  stuck.reading = false;
  await settle(300);
  const stalledAt = written.bytes;
  await rig.clock.advance(29_000);
  assert.equal(written.bytes, stalledAt, "the slowest sets the pace");
  await rig.clock.advance(1_000);
  await settle(50);
  assert.ok(written.bytes > stalledAt);
  stuck.read();
  await settle(20);
  const last = stuck.messages().at(-1) as { end: { error: { code: string } } };
  assert.equal(last.end.error.code, "resource_exhausted");
  assert.equal(good.ended, false);
  rig.close();
});
