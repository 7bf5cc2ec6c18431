// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// R-9 at a worker that serves: each second that counts, on both sides, with bytes that it remembers and bytes that it does not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { faultLanded } from "../src/fault-landed.ts";
import { verdictOf, WorkerRig } from "../src/worker-rig.ts";

/** Milliseconds after the issue, and what the worker says then. */
const edges: readonly (readonly [afterMs: number, verdict: "match" | "deny"])[] = [
  [119_900, "match"],
  [120_000, "match"],
  [134_900, "match"],
  [134_999, "match"],
  [135_000, "deny"],
  [135_001, "deny"],
];

async function running(): Promise<{ rig: WorkerRig; identity: ReturnType<WorkerRig["identity"]> }> {
  const rig = new WorkerRig();
  await rig.boot();
  const identity = rig.identity();
  await rig.run(identity);
  return { rig, identity };
}

for (const isRemembered of [false, true]) {
  test(`incident 13: a token ends at its very millisecond, ${isRemembered ? "also when it is remembered" : "seen for the first time"}`, async () => {
    const { rig, identity } = await running();
    const link = rig.gateway();
    const capability = rig.authority.capability({ identity, presenter: rig.presenter });
    const issuedMs = rig.clock.wallMs();
    assert.equal(issuedMs % 1000, 0, "issued at a whole second, so that the edges are exact");
    if (isRemembered)
      assert.equal(verdictOf(await rig.send(link, rig.head(identity, { capability }))), "match");
    const tokens = edges.map(() => rig.authority.capability({ identity, presenter: rig.presenter }));
    let atAnEdge = 0;
    const found: (readonly [number, string])[] = [];
    for (const [afterMs] of edges) {
      await rig.clock.advance(issuedMs + afterMs - rig.clock.wallMs());
      const shown = isRemembered ? capability : tokens.shift();
      const answer = await rig.send(link, rig.head(identity, { capability: shown ?? capability }));
      if (rig.clock.wallMs() - issuedMs === afterMs) atAnEdge += 1;
      found.push([afterMs, verdictOf(answer)]);
    }
    faultLanded("the token was presented on both sides of its last millisecond", atAnEdge - edges.length + 1);
    assert.deepEqual(found, edges);
    const reasons = rig.audit.of("admission/denied").map(({ reason }) => reason);
    assert.deepEqual(reasons, ["expired", "expired"]);
    link.destroy(undefined);
  });
}

test("incident 13: a token from the future is taken from 15 s on, by the wall clock of now", async () => {
  const { rig, identity } = await running();
  const link = rig.gateway();
  const capability = rig.authority.capability({ identity, presenter: rig.presenter });
  const issuedMs = rig.clock.wallMs();
  const verdicts: string[] = [];
  const aheadMs: number[] = [];
  for (const wantedMs of [15_001, 15_000, 14_999]) {
    rig.clock.step(issuedMs - wantedMs - rig.clock.wallMs()); // the worker's wall clock is behind the signer's
    aheadMs.push(issuedMs - rig.clock.wallMs());
    verdicts.push(verdictOf(await rig.send(link, rig.head(identity, { capability }))));
  }
  faultLanded("the signer's clock was ahead of the worker's", aheadMs.filter((ms) => ms >= 14_999).length);
  assert.deepEqual(
    [aheadMs, verdicts],
    [
      [15_001, 15_000, 14_999],
      ["deny", "match", "match"],
    ],
  );
  assert.equal(rig.audit.of("admission/denied")[0]?.reason, "not-yet");
  link.destroy(undefined);
});
