// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Incident 29 at what all guests of a worker share, their bridge: one that takes whatever it can get there. What a neighbour
// then waits is counted in turns of the bridge's event loop, which no busy machine makes more of.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { newActivationId, Secret } from "@space/model";
import { FakeGuest } from "../src/fake-guest.ts";
import type { FakeProcess } from "../src/fake-process.ts";
import { faultLanded } from "../src/fault-landed.ts";
import { enveloped, HostRig, type RigAnswer } from "../src/host-rig.ts";

/** More than one sandbox may have under way, or wait for. */
const greedyRequests = 2500;
const floods = 24;
const pieceBytes = 4 * 1024;
const turnLimit = 1000;

/** How many turns of the event loop an answer takes. */
async function turnsOf(answer: RigAnswer): Promise<number> {
  let turns = 0;
  while (!answer.ended && turns < turnLimit) {
    await nextTurn();
    turns += 1;
  }
  assert.equal(answer.status, 200);
  return turns;
}

test("incident 29: beside a guest that floods its bridge and answers nothing, a neighbour is served in as many turns as alone", async (context) => {
  const rig = await HostRig.adopted();
  const neighbour = newActivationId(rig.random);
  const activationSecret = new Secret<Uint8Array>(rig.random.bytes(32));
  const quiet = new FakeGuest({ activationId: neighbour, secret: activationSecret.reveal() });
  quiet.files.write("/home/user/a", "fine");
  rig.neighbours.set("/run/quiet.sock", quiet);
  await rig.control.adopt(
    rig.adoption({ activationId: neighbour, activationSecret, socketPath: "/run/quiet.sock" }),
  );
  const read = () => rig.open("GET", "/files?path=/home/user/a", { activation: neighbour, body: "" });
  await turnsOf(read()); // its users are known from here on
  const alone = await turnsOf(read());

  let flooded = 0;
  let isOver = false;
  context.after(() => {
    isOver = true;
    rig.close();
  });
  const piece = Buffer.alloc(pieceBytes, "x");
  rig.guest.programs.set("flood", (process: FakeProcess) => {
    void (async () => {
      while (!isOver) {
        await process.output("stdout", piece); // as much as the bridge takes
        flooded += 1;
        await nextTurn();
      }
    })();
  });
  for (let at = 0; at < floods; at += 1) {
    const body = enveloped(JSON.stringify({ process: { cmd: "flood" } }));
    rig.open("POST", "/process.Process/Start", {
      headers: { "content-type": "application/connect+json" },
      body,
    });
  }
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
  rig.guest.answersNothing = true;
  const headers = { "content-type": "application/json" };
  const greedy = Array.from({ length: greedyRequests }, (_none, at) =>
    at % 5 === 0
      ? rig.open("GET", "/files?path=/etc/passwd", { body: "" })
      : rig.open("POST", "/process.Process/List", { headers }),
  ); // of most the body never ends
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
  const before = flooded;
  const beside = await turnsOf(read());
  faultLanded("it flooded its bridge while the neighbour was served", flooded - before);
  faultLanded(
    "it had all that it may have, and was refused more",
    greedy.filter(({ status }) => status >= 400).length,
  );
  assert.ok(beside <= 2 * alone + 4, `${beside} turns beside it, ${alone} alone`);
});
