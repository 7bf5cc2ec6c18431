// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { SandboxId } from "@space/model";
import { faultLanded } from "../src/fault-landed.ts";
import {
  checkNothingLost,
  type KilledOperation,
  killedOperations,
  sendAgain,
} from "../src/killed-operations.ts";
import { LossRig } from "../src/loss-rig.ts";
import { checkSettledWorld, livingSandboxes } from "../src/settled-world.ts";
import { settle } from "../src/virtual-clock.ts";

/** More points than any operation has: one that never ends is found. */
const pointsLimit = 400;

/** Sends the operation and dies at this point of it. Whether its client had an answer, and where it died. */
async function dieIn(
  rig: LossRig,
  operation: KilledOperation,
  { id, key, point }: { readonly id: SandboxId | undefined; readonly key: string; readonly point: number },
): Promise<{ readonly isAnswered: boolean; readonly diedAt: string | undefined }> {
  const { life } = rig;
  let isAnswered = false;
  let failure: unknown;
  life.dieAt(point);
  operation.send(rig, id, key).then(
    () => {
      isAnswered = true;
    },
    (error: unknown) => {
      failure = error;
    },
  );
  for (let turns = 0; turns < 20; turns += 1) {
    await settle();
    if (life.diedAt !== undefined || isAnswered) break;
  }
  await settle(); // what goes on behind the answer
  life.dieAt(Number.POSITIVE_INFINITY);
  if (failure !== undefined && life.diedAt === undefined)
    throw new TypeError("it failed, though nobody died", { cause: failure });
  assert.ok(isAnswered || life.diedAt !== undefined, "it neither ended nor died");
  return { isAnswered, diedAt: life.diedAt };
}

/** Kills what there is, and forgets what was kept: what that leaves is found by the next check. */
async function clear(rig: LossRig): Promise<void> {
  for (const { sandboxId } of await livingSandboxes(rig)) await rig.service.kill(rig.caller, sandboxId);
  for (const { template } of await rig.service.listSnapshots(rig.caller, { limit: 100 }))
    await rig.service.deleteSnapshot(rig.caller, template);
}

interface Kills {
  /** Who comes after the dead one. */
  readonly nextOwner: (point: number) => string;
  /** It is killed at each so many-th point. */
  readonly each: number;
}

async function killAtEachPoint(
  context: TestContext,
  operation: KilledOperation,
  { nextOwner, each }: Kills,
): Promise<void> {
  const rig = await LossRig.open(context);
  let kills = 0;
  for (let point = 1; point < pointsLimit; point += each) {
    const said = `said before ${point}`;
    const key = `key ${point}`;
    const id = await operation.prepare(rig, said);
    const { isAnswered, diedAt } = await dieIn(rig, operation, { id, key, point });
    if (diedAt === undefined) break;
    kills += 1;
    await rig.end();
    await rig.start(nextOwner(point));
    await rig.settled();
    try {
      await checkSettledWorld(rig);
      if (isAnswered) await operation.reached(rig, id);
      await sendAgain(rig, operation, { id, key });
      await settle();
      await operation.reached(rig, id);
      await checkNothingLost(rig, id === undefined ? "" : said);
      await clear(rig);
    } catch (cause) {
      throw new Error(`killed at point ${point}, ${diedAt}${isAnswered ? ", answered" : ""}`, { cause });
    }
  }
  await clear(rig);
  await rig.settled();
  await checkSettledWorld(rig);
  faultLanded(`the control plane died in a ${operation.name}`, kills);
  context.diagnostic(`${operation.name}: killed at ${kills} points`);
}

describe("a control plane that is killed at every call of its ports, and comes back", () => {
  for (const operation of killedOperations)
    test(`in a ${operation.name}: a true state, one effect, nothing lost, twice, or left`, (context) =>
      killAtEachPoint(context, operation, { nextOwner: () => "first", each: 1 }));
});

describe("another replica that takes over when the claim has run out", () => {
  for (const operation of killedOperations)
    test(`in a ${operation.name}: a true state, one effect, nothing lost, twice, or left`, (context) =>
      killAtEachPoint(context, operation, { nextOwner: (point) => `replica ${point}`, each: 3 }));
});
