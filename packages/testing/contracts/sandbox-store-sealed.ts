// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Generation, parseGeneration, type SandboxRecord, type SealedSegment } from "@space/model";
import { sampleClaim as claim, digestOf, type OpenedStore, StoreSubject } from "./sandbox-store.ts";

const all = 2n ** 63n - 1n;

/** the links of a chain by their generations, and the names of the objects that they are sealed in. */
export function sandboxStoreSealedContract(name: string, open: () => Promise<OpenedStore>): void {
  const subject = async (context: { after(fn: () => Promise<void>): void }): Promise<StoreSubject> => {
    const store = await open();
    context.after(() => store.dispose());
    return new StoreSubject(store).prepare();
  };
  const generation = (value: number): Generation => parseGeneration(String(value));
  const segment = (at: number, previous: SealedSegment | null = null): SealedSegment => ({
    digest: digestOf(`segment ${at}`),
    previous: previous?.digest ?? null,
    after: previous?.through ?? 0n,
    through: generation(at),
    run: previous === null ? 0 : previous.run + 1,
  });
  const pausing = (
    s: StoreSubject,
    on: SandboxRecord,
    sealed: readonly SealedSegment[],
  ): Promise<SandboxRecord> => s.won(on, { kind: "claim-pause", claim, sealed });

  describe(`${name}: sealed chains`, () => {
    test("R-5: links come by their generations: certificates after one, and manifests from it on, before another", async (context) => {
      const s = await subject(context);
      const third = await s.publish(
        await s.resuming(await s.pause(await s.publish(await s.resuming(await s.paused())))),
      );
      const { sandboxId } = third;
      const links = async (after: bigint, through = all) => {
        const { certificates, manifests } = await s.store.sandboxes.links(sandboxId, { after, through });
        for (const { generation: of, token } of certificates)
          assert.equal(token, `certificate ${sandboxId} ${of}`);
        for (const { generation: of, token } of manifests) assert.equal(token, `manifest ${sandboxId} ${of}`);
        return [certificates.map((link) => link.generation), manifests.map((link) => link.generation)];
      };
      assert.deepEqual(await links(0n), [
        [1n, 2n, 3n],
        [1n, 2n],
      ]);
      assert.deepEqual(await links(1n), [
        [2n, 3n],
        [1n, 2n],
      ]);
      assert.deepEqual(await links(3n), [[], []]);
      assert.deepEqual(await links(0n, 2n), [[1n, 2n], [1n]]);
      assert.deepEqual(await links(1n, 2n), [[2n], [1n]]);
    });

    test("R-5: objects are remembered with the claim that makes them, the newest first, and outlive a restart", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      const { sandboxId } = running;
      assert.deepEqual(await s.store.sandboxes.segments(sandboxId, 9), []);
      const first = segment(1);
      const back = await s.won(await pausing(s, running, [first]), { kind: "abort-pause" });
      const resumed = await s.publish(await s.resuming(await s.pause(back)));
      const second = segment(2, first);
      await pausing(s, resumed, [second]);
      const again = await s.store.reopen();
      assert.deepEqual(await again.sandboxes.segments(sandboxId, 9), [second, first]);
      assert.deepEqual(await again.sandboxes.segments(sandboxId, 1), [second]);
    });

    test("R-5: a claim that loses remembers nothing", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      await s.won(running, { kind: "set-end", endAtMs: 99_000 });
      await s.stale(running, { kind: "claim-pause", claim, sealed: [segment(1)] });
      assert.deepEqual(await s.store.sandboxes.segments(running.sandboxId, 9), []);
    });

    test("R-5: a resume remembers them too, and a kill that is finished forgets all", async (context) => {
      const s = await subject(context);
      const paused = await s.paused();
      const { sandboxId } = paused;
      const identity = s.identity(paused, generation(2));
      const first = segment(1);
      const resuming = await s.won(paused, { kind: "claim-resume", identity, claim, sealed: [first] });
      const objects = await s.store.sandboxes.identityObjects(sandboxId);
      assert.deepEqual(objects.toSorted(), [first.digest, digestOf(`manifest ${sandboxId} 1`)].toSorted());
      const killing = await s.won(resuming, { kind: "claim-kill", claim });
      assert.equal((await s.store.sandboxes.identityObjects(sandboxId)).length, 2, "still to be deleted");
      await s.won(killing, { kind: "finish-kill" });
      assert.deepEqual(await s.store.sandboxes.identityObjects(sandboxId), []);
      assert.deepEqual(await s.store.sandboxes.segments(sandboxId, 9), []);
    });

    test("R-5: several in one claim are one line", async (context) => {
      const s = await subject(context);
      const second = await s.publish(await s.resuming(await s.paused()));
      const [one] = [segment(1)];
      const two = segment(2, one);
      await pausing(s, second, [one, two]);
      assert.deepEqual(await s.store.sandboxes.segments(second.sandboxId, 9), [two, one]);
    });
  });
}
