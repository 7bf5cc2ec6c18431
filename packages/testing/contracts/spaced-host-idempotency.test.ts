// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { newActivationId, Secret } from "@space/model";
import { flat } from "../src/continuing-caller.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { HostRig, type RigAnswer } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

// R-28, incident 24: "did it run?", answered by the memory that lives as long as the processes.

const start = "process.Process/Start";
const key = (name: string): Record<string, string> => ({ "idempotency-key": name });
const minute = 60_000;
let names = 0;
const position = (): Record<string, string> =>
  flat({ key: `adm_${(names++).toString(32).padStart(26, "s")}` });

async function withPrograms(isFirst = true): Promise<HostRig> {
  const rig = new HostRig();
  await rig.control.adopt(rig.adoption({ isFirst }));
  rig.guest.programs.set("idle", () => undefined);
  rig.guest.programs.set("echo", (process) => {
    void process.output("stdout", "hi");
    process.exit(3);
  });
  return rig;
}

const run = (rig: HostRig, cmd: string, headers: Record<string, string>): Promise<RigAnswer> =>
  rig.stream(start, { process: { cmd } }, headers);

async function outcome(rig: HostRig, name: string): Promise<unknown> {
  return (await rig.call("GET", "/process/outcome", { headers: key(name) })).json();
}

function errorOf(answer: RigAnswer): string | undefined {
  const last = answer.messages().at(-1) as { end?: { error?: { code: string } } };
  return last.end?.error?.code;
}

it("incident 24, R-28: a start whose answer was lost is not run again: it is found, running or ended", async () => {
  const rig = await withPrograms();
  const first = await run(rig, "idle", key("k1"));
  const pid = rig.guest.started[0]?.pid;
  first.stream.reset("transport"); // the answer is lost after the command ran
  await settle();
  faultLanded(
    "it ran, and its caller did not hear of its end",
    rig.guest.started.length - Number(first.ended),
  );
  assert.deepEqual(await outcome(rig, "k1"), { outcome: "ran", pid });
  const again = await run(rig, "idle", key("k1"));
  assert.deepEqual(again.messages(), [{ event: { start: { pid } } }]);
  rig.guest.started[0]?.exit(7);
  await settle();
  const end = { exitCode: 7, exited: true, status: "exit status 7", error: "exit status 7" };
  assert.deepEqual(again.messages().slice(1), [{ event: { end } }, { end: {} }]);
  assert.deepEqual(await outcome(rig, "k1"), { outcome: "ran", pid, end });
  const later = await run(rig, "idle", key("k1"));
  assert.deepEqual(later.messages(), [{ event: { start: { pid } } }, { event: { end } }, { end: {} }]);
  assert.equal(rig.guest.started.length, 1);
  rig.close();
});

it("R-28: through a gateway the second presentation gets the whole answer of the first, and takes it over", async () => {
  const rig = await withPrograms();
  const first = await run(rig, "echo", { ...key("k1"), ...position() });
  const whole = first.body;
  const again = await run(rig, "echo", { ...key("k1"), ...position() });
  assert.ok(again.body.equals(whole));
  assert.ok(again.ended);
  const slow = position();
  const running = await run(rig, "idle", { ...key("k2"), ...slow });
  const other = await run(rig, "idle", { ...key("k2"), ...position() });
  assert.equal(running.reset, "superseded");
  assert.ok(other.body.equals(running.body));
  const back = rig.open("POST", "/process.Process/Connect", {
    headers: { "content-type": "application/connect+json", ...slow, "space-offset": "0" },
    body: "",
  });
  await settle();
  assert.ok(back.streamLost, "what was taken over does not go back and forth");
  assert.equal(rig.guest.started.length, 2);
  rig.close();
});

it("R-28: two presentations at once run one process", async () => {
  const rig = await withPrograms();
  const headers = { "content-type": "application/connect+json", ...key("k1") };
  const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 26]), Buffer.from('{"process":{"cmd":"idle"}}')]);
  const both = [1, 2].map(() => rig.open("POST", `/${start}`, { headers, body }));
  await settle();
  assert.equal(rig.guest.started.length, 1);
  const [one, two] = both.map((answer) => answer.messages()[0]);
  assert.deepEqual(one, { event: { start: { pid: rig.guest.started[0]?.pid } } });
  assert.deepEqual(one, two);
  rig.close();
});

it("R-28: what did not run may be run again, and what is reported as not run will not", async () => {
  const rig = await withPrograms();
  assert.equal(errorOf(await run(rig, "absent", key("k1"))), "invalid_argument");
  rig.guest.programs.set("absent", () => undefined);
  assert.equal(errorOf(await run(rig, "absent", key("k1"))), undefined);
  assert.equal(rig.guest.started.length, 1);
  assert.deepEqual(await outcome(rig, "k2"), { outcome: "did-not-run" });
  assert.equal(errorOf(await run(rig, "idle", key("k2"))), "aborted", "the lost start arrives late");
  assert.equal(rig.guest.started.length, 1);
  rig.close();
});

it("R-28: a key names one start, by the same caller's words", async () => {
  const rig = await withPrograms();
  await run(rig, "idle", key("k1"));
  assert.equal(errorOf(await run(rig, "echo", key("k1"))), "invalid_argument");
  assert.equal(errorOf(await run(rig, "idle", key("not printable \u00e9"))), "invalid_argument");
  assert.equal(errorOf(await run(rig, "idle", key("x".repeat(256)))), "invalid_argument");
  assert.equal((await rig.call("GET", "/process/outcome")).status, 400);
  assert.equal(rig.guest.started.length, 1);
  rig.close();
});

it("R-28: the memory survives the daemon and a pause on the same worker", async () => {
  const rig = await withPrograms();
  await run(rig, "idle", key("k1"));
  const pid = rig.guest.started[0]?.pid;
  rig.dial();
  const to = newActivationId(rig.random);
  const activationSecret = new Secret<Uint8Array>(rig.random.bytes(32));
  await rig.control.rekey({ from: rig.activationId, to, activationSecret });
  const answer = await rig.call("GET", "/process/outcome", { headers: key("k1"), activation: to });
  assert.deepEqual(answer.json(), { outcome: "ran", pid });
  rig.close();
});

it("R-28: where the memory that knew is gone the answer is unknown, and nothing runs", async () => {
  const rig = await withPrograms(false);
  for (const headers of [key("k1"), { ...key("k1"), ...position(), "space-offset": "0" }]) {
    assert.equal(errorOf(await run(rig, "idle", headers)), "aborted");
  }
  assert.deepEqual(await outcome(rig, "k1"), { outcome: "unknown" });
  assert.equal(rig.guest.started.length, 0);
  assert.equal(errorOf(await run(rig, "idle", {})), undefined, "without a key it is run");
  const uuid7 = (wallMs: number): string => {
    const hex = wallMs.toString(16).padStart(12, "0");
    return `${hex.slice(0, 8)}-${hex.slice(8)}-7abc-8def-0123456789ab`;
  };
  await rig.clock.advance(minute);
  assert.equal(errorOf(await run(rig, "idle", key(uuid7(rig.clock.wallMs() - minute + 14_000)))), "aborted");
  assert.equal(errorOf(await run(rig, "idle", key(uuid7(rig.clock.wallMs() - 30_000)))), undefined);
  assert.equal(
    rig.guest.started.length,
    2,
    "a key that is younger than the memory cannot have been used before",
  );
  await rig.clock.advance(10 * minute);
  assert.equal(errorOf(await run(rig, "idle", key("k1"))), undefined, "no key is older than a key may be");
  rig.close();
});

it("R-28: a start whose guest was lost while it was asked is unknown", async () => {
  const rig = await withPrograms();
  rig.guest.programs.set("fatal", () => rig.guest.die());
  await run(rig, "fatal", key("k1"));
  assert.deepEqual(await outcome(rig, "k1"), { outcome: "unknown" });
  rig.close();
});

it("R-28: keys are remembered for their time, and no more than their number", async () => {
  const rig = await withPrograms();
  await run(rig, "echo", key("old"));
  await run(rig, "idle", key("running"));
  await rig.clock.advance(10 * minute);
  for (let at = 0; at < 9_999; at += 1) {
    rig.open("GET", "/process/outcome", { headers: key(`n${at}`), body: "" });
    if (at % 100 === 0) await settle(4);
  }
  await settle();
  assert.equal(errorOf(await run(rig, "echo", key("more"))), "resource_exhausted");
  await run(rig, "idle", key("running"));
  assert.equal(rig.guest.started.length, 2, "a running process's key counts however old");
  await rig.clock.advance(10 * minute);
  assert.equal(errorOf(await run(rig, "echo", key("old"))), undefined);
  assert.equal(rig.guest.started.length, 3);
  rig.close();
});
