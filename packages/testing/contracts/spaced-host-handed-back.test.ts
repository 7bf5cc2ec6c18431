// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// A process that ends gives its connection back to its guest's pool. Here a pause, or the rekey after it, comes in just that
// moment: before the guest's word of the end, with it, or after it.

import assert from "node:assert/strict";
import { it } from "node:test";
import { newActivationId, Secret } from "@space/model";
import { GuestFrame } from "@space/spaced-guest";
import { enveloped, HostRig } from "../src/host-rig.ts";
import { settle } from "../src/virtual-clock.ts";

const ended = { exited: true, status: "exit status 0" };

interface Scene {
  readonly rig: HostRig;
  /** Ends the process, as its program does. */
  readonly exit: () => void;
  readonly pause: () => Promise<boolean>;
  readonly input: () => Promise<unknown>;
  readonly rekey: () => Promise<void>;
}

type Step = "input" | "exit" | "turn" | "pause" | "rekey";

const orders: readonly (readonly Step[])[] = [
  ["exit", "pause", "rekey"],
  ["pause", "exit", "rekey"],
  ["pause", "rekey", "exit"],
  ["pause", "rekey", "turn", "exit"],
  ["exit", "turn", "pause", "rekey"],
  ["input", "exit", "pause", "rekey"],
  ["exit", "input", "pause", "rekey"],
  ["pause", "input", "exit", "rekey"],
  ["exit", "rekey"],
  ["rekey", "exit"],
  // A pause that fails, or one of which nothing else comes: the guest goes on, under the same name and over the same pool.
  ["exit", "pause"],
  ["pause", "exit"],
  ["exit", "turn", "pause"],
  ["input", "exit", "pause"],
  ["exit", "input", "pause"],
  ["pause", "turn", "exit", "pause"],
];

for (const order of orders)
  it(`R-20: ${order.join(", ")}: what is asked next is asked over a connection of the name of then, one thing at a time`, async () => {
    const rig = await HostRig.adopted();
    rig.guest.programs.set("idle", () => undefined);
    rig.guest.programs.set("echo", (process) => {
      void process.output("stdout", "hi");
      process.exit(0);
    });
    const answer = await rig.stream("process.Process/Start", { process: { cmd: "idle" }, stdin: true });
    const process = rig.guest.started[0] ?? assert.fail("it runs");
    const to = newActivationId(rig.random);
    const activationSecret = new Secret<Uint8Array>(rig.random.bytes(32));
    const scene: Scene = {
      rig,
      exit: () => process.exit(0),
      pause: () => rig.control.quiesce(rig.activationId, 1000, false),
      input: () =>
        rig.rpc("process.Process/SendInput", {
          process: { pid: process.pid },
          input: { stdin: Buffer.from("late").toString("base64") },
        }),
      rekey: () => rig.control.rekey({ from: rig.activationId, to, activationSecret }),
    };
    await inOrder(scene, order);

    const now = order.includes("rekey") ? to : rig.activationId;
    assert.equal(rig.guest.activationId, now);
    const before = rig.guest.requests.length;
    const next = (await Promise.all(Array.from({ length: 20 }, () => startEcho(rig, now)))).map((one) =>
      one.messages().slice(1),
    );
    assert.deepEqual(
      next,
      next.map(() => [
        { event: { data: { stdout: Buffer.from("hi").toString("base64") } } },
        { event: { end: ended } },
        { end: {} },
      ]),
    );
    assert.equal(rig.guest.requests.slice(before).filter((type) => type === GuestFrame.spawn).length, 20);
    const listed = await rig.call("POST", "/process.Process/List", {
      activation: now,
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    assert.deepEqual(listed.json(), { processes: [] }, "nothing of it is left");
    const told = answer.messages().at(-1);
    assert.ok(
      answer.reset !== undefined || JSON.stringify(told) === JSON.stringify({ end: {} }),
      "its caller knows",
    );
    rig.close();
  });

async function inOrder(scene: Scene, order: readonly Step[]): Promise<void> {
  const underWay: Promise<unknown>[] = [];
  for (const step of order) {
    if (step === "turn") await settle(1);
    else if (step === "exit") scene.exit();
    else if (step === "input") underWay.push(scene.input());
    else if (step === "pause") underWay.push(scene.pause());
    else {
      // The worker rekeys when the pause is done; an end that is to come later comes in the midst of it.
      if (!order.slice(order.indexOf("rekey")).includes("exit")) await Promise.all(underWay.splice(0));
      underWay.push(scene.rekey());
    }
  }
  await Promise.all(underWay);
  await settle();
}

function startEcho(rig: HostRig, activation: HostRig["activationId"]) {
  return rig.call("POST", "/process.Process/Start", {
    activation,
    headers: { "content-type": "application/connect+json" },
    body: enveloped(JSON.stringify({ process: { cmd: "echo" }, stdin: false })),
  });
}
