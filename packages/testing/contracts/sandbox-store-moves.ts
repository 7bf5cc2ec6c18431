// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nextGeneration, type SandboxRecord } from "@space/model";
import { sampleClaim as claim, digestOf, type OpenedStore, StoreSubject } from "./sandbox-store.ts";

/** What is written when a sandbox goes from one worker to another. */
export function sandboxStoreMoveContract(name: string, open: () => Promise<OpenedStore>): void {
  const subject = async (context: { after(fn: () => Promise<void>): void }): Promise<StoreSubject> => {
    const store = await open();
    context.after(() => store.dispose());
    return new StoreSubject(store).prepare();
  };

  describe(`${name}: moves`, () => {
    test("R-1: a move commits its pause and begins the next generation in one write, and its end stays", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      const pausing = await s.won(running, { kind: "claim-pause", claim, sealed: [] });
      const identity = s.identity(pausing, nextGeneration(pausing.generation));
      const manifest = (previous: SandboxRecord["certificateHead"]) => ({
        countersigned: "moved",
        digest: digestOf("moved"),
        previous,
        memory: "in-snapshot" as const,
        sizeBytes: 7,
      });
      const { workerId } = running.execution.identity.placement;
      const move = { kind: "commit-move", frozenOn: workerId, identity, claim } as const;
      await s.stale(pausing, { ...move, manifest: manifest(digestOf("another")) });
      const skipped = s.identity(pausing, nextGeneration(identity.generation));
      await s.stale(pausing, { ...move, manifest: manifest(null), identity: skipped });
      const moving = await s.won(pausing, { ...move, manifest: manifest(null) });
      assert.deepEqual(
        [moving.state, moving.generation, moving.execution.state, moving.endAtMs, moving.claim],
        ["resuming", 2n, "starting", running.endAtMs, claim],
      );
      assert.deepEqual(moving.snapshot, {
        digest: digestOf("moved"),
        memory: "in-snapshot",
        sizeBytes: 7,
        frozenOn: workerId,
      });
      const stored = await s.store.sandboxes.manifest(moving.sandboxId, digestOf("moved"));
      assert.deepEqual(stored, { countersigned: "moved", executionPublicKey: "key" });
      const links = await s.store.sandboxes.links(moving.sandboxId, { after: 0n, through: 9n });
      assert.deepEqual(links.manifests, [{ generation: 1n, token: "moved" }]);
      const given = await s.won(moving, { kind: "abandon-resume", reason: "no" });
      assert.deepEqual([given.state, given.snapshot?.frozenOn], ["paused", workerId]);
      assert.equal((await s.publish(await s.resuming(given))).generation, 3n);
    });
  });
}
