// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type Generation,
  parseGeneration,
  type SandboxRecord,
  type SealedSegment,
  type StoredSnapshot,
} from "@space/model";
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
      assert.deepEqual(await s.store.sandboxes.segments(sandboxId, 9), [first]);
      const killing = await s.won(resuming, { kind: "claim-kill", claim });
      await s.won(killing, { kind: "finish-kill" });
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

  describe(`${name}: newest snapshots`, () => {
    const page = { after: null, limit: 100 };
    const all = async (s: StoreSubject): Promise<readonly string[]> =>
      (await s.store.sandboxes.snapshots(s.tenantId, page)).map(({ countersigned }) => countersigned);

    test("of each sandbox that may be resumed the newest one, whatever else it is doing", async (context) => {
      const s = await subject(context);
      await s.running();
      const paused = await s.paused();
      const { sandboxId } = paused;
      const first = `manifest ${sandboxId} 1`;
      assert.deepEqual(await s.store.sandboxes.snapshots(s.tenantId, page), [
        { sandboxId, digest: digestOf(first), countersigned: first },
      ]);
      const resuming = await s.resuming(paused);
      assert.deepEqual(await all(s), [first]);
      const running = await s.publish(resuming);
      assert.deepEqual(await all(s), [first]);
      const again = await pausing(s, running, []);
      assert.deepEqual(await all(s), [first], "the pause may still fail");
      const back = await s.won(again, { kind: "abort-pause" });
      const second = await s.pause(back);
      assert.deepEqual(await all(s), [`manifest ${sandboxId} 2`]);
      const lost = await s.won(await s.publish(await s.resuming(second)), { kind: "lose", reason: "gone" });
      assert.deepEqual(await all(s), [`manifest ${sandboxId} 2`]);
      const killing = await s.won(lost, { kind: "claim-kill", claim });
      assert.deepEqual(await all(s), [], "nothing resumes it any more");
      await s.won(killing, { kind: "finish-kill" });
      assert.deepEqual(await all(s), []);
    });

    test("in the order of their ids, page by page, and of no other tenant", async (context) => {
      const s = await subject(context);
      const ids: string[] = [];
      for (let count = 0; count < 7; count += 1) ids.push((await s.paused()).sandboxId);
      await (await new StoreSubject(s.store).prepare()).paused();
      const seen: string[] = [];
      for (let after: StoredSnapshot | undefined; ; ) {
        const found = await s.store.sandboxes.snapshots(s.tenantId, {
          after: after?.sandboxId ?? null,
          limit: 3,
        });
        seen.push(...found.map(({ sandboxId }) => sandboxId));
        after = found.at(-1);
        if (found.length < 3) break;
      }
      assert.deepEqual(seen, ids.toSorted());
    });

    test("which sandboxes of the tenant are pausing, at which revision", async (context) => {
      const s = await subject(context);
      const [running, other] = [await s.running(), await new StoreSubject(s.store).prepare()];
      await pausing(other, await other.running(), []);
      assert.deepEqual(await s.store.sandboxes.pausing(s.tenantId), []);
      const claimed = await pausing(s, running, []);
      const [found, ...rest] = await s.store.sandboxes.pausing(s.tenantId);
      assert.deepEqual([found?.sandboxId, found?.revision], [running.sandboxId, claimed.revision]);
      assert.deepEqual(rest, []);
      await s.won(claimed, { kind: "abort-pause" });
      assert.deepEqual(await s.store.sandboxes.pausing(s.tenantId), []);
    });
  });
}
