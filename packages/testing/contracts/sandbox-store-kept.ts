// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type KeptSnapshot,
  type NewSandbox,
  newSnapshotId,
  newTenantId,
  type SandboxRecord,
  type SnapshotId,
} from "@space/model";
import { SeededRandom } from "../src/seeded-random.ts";
import { sampleClaim as claim, digestOf, type OpenedStore, StoreSubject } from "./sandbox-store.ts";

const random = new SeededRandom("kept snapshots");

/** Snapshots that are kept apart from their sandboxes, and what begins with them. */
export function sandboxStoreKeptContract(name: string, open: () => Promise<OpenedStore>): void {
  const subject = async (context: { after(fn: () => Promise<void>): void }): Promise<StoreSubject> => {
    const store = await open();
    context.after(() => store.dispose());
    return new StoreSubject(store).prepare();
  };
  const draft = (source: SandboxRecord, more: Partial<KeptSnapshot> = {}): KeptSnapshot => {
    const snapshotId = newSnapshotId(random);
    return {
      snapshotId,
      tenantId: source.tenantId,
      sandboxId: source.sandboxId,
      digest: digestOf(snapshotId),
      countersigned: `manifest ${snapshotId}`,
      executionPublicKey: source.execution.publicKey ?? "",
      memory: "in-snapshot",
      sizeBytes: 9,
      objects: [digestOf("one"), digestOf("two")],
      template: "base",
      limits: { memoryBytes: 1, cpus: 0.5, processes: 2, diskBytes: 3 },
      variables: { A: "ü" },
      name: null,
      createdAtMs: 2500,
      heldUntilMs: null,
      ...more,
    };
  };
  /** A snapshot of it is kept, and it runs again. */
  const keep = async (
    s: StoreSubject,
    source: SandboxRecord,
    more: Partial<KeptSnapshot> = {},
  ): Promise<{ readonly kept: KeptSnapshot; readonly source: SandboxRecord }> => {
    const kept = draft(source, more);
    const pausing = await s.won(source, { kind: "claim-snapshot", claim, sealed: [] });
    const after = await s.won(pausing, { kind: "keep-snapshot", kept });
    return { kept, source: await s.won(after, { kind: "abort-pause" }) };
  };
  const begin = (s: StoreSubject, { snapshotId, digest: parentManifest }: KeptSnapshot) =>
    s.store.sandboxes.begin(s.draft({ origin: { kind: "fork", snapshotId, parentManifest } }));
  const child = async (s: StoreSubject, kept: KeptSnapshot): Promise<SandboxRecord> => {
    const outcome = await begin(s, kept);
    assert.equal(outcome.kind, "begun");
    return outcome.record;
  };
  const listed = async (s: StoreSubject, query: object = {}): Promise<readonly SnapshotId[]> => {
    const found = await s.store.sandboxes.listKept(s.tenantId, { limit: 10, ...query });
    return found.map(({ snapshotId }) => snapshotId);
  };
  const needed = async (s: StoreSubject, tenantId = s.tenantId): Promise<readonly SnapshotId[]> => {
    const all = await s.store.sandboxes.neededSnapshots(tenantId, { after: null, limit: 10 });
    return all.map(({ snapshotId }) => snapshotId);
  };

  describe(`${name}: kept snapshots`, () => {
    test("one is read back as it was kept, and what it is of goes on as it was", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      const claimed = await s.won(running, { kind: "claim-snapshot", claim, sealed: [] });
      assert.deepEqual([claimed.state, claimed.goesOn], ["pausing", true]);
      const kept = draft(claimed);
      const during = await s.won(claimed, { kind: "keep-snapshot", kept });
      assert.deepEqual({ ...during, revision: 0 }, { ...claimed, revision: 0 });
      const after = await s.won(during, { kind: "abort-pause" });
      assert.deepEqual(
        { ...after, revision: 0, goesOn: false },
        { ...running, revision: 0, goesOn: false },
        "its end, its execution and its newest snapshot are untouched",
      );
      assert.deepEqual(await s.store.sandboxes.keptSnapshot(s.tenantId, kept.snapshotId), kept);
      assert.deepEqual(await s.store.sandboxes.listKept(s.tenantId, { limit: 10 }), [kept]);
      const again = await s.store.reopen();
      assert.deepEqual(await again.sandboxes.keptSnapshot(s.tenantId, kept.snapshotId), kept);
    });

    test("a pause for a snapshot is never committed, and a pause is never kept", async (context) => {
      const s = await subject(context);
      const claimed = await s.won(await s.running(), { kind: "claim-snapshot", claim, sealed: [] });
      const manifest = {
        countersigned: "manifest",
        digest: digestOf("manifest"),
        previous: null,
        memory: "none",
        sizeBytes: 1,
      } as const;
      await s.stale(claimed, { kind: "commit-pause", manifest, frozenOn: null, endAtMs: 1 });
      const pausing = await s.won(await s.running(), { kind: "claim-pause", claim, sealed: [] });
      assert.equal(pausing.goesOn, false);
      await s.stale(pausing, { kind: "keep-snapshot", kept: draft(pausing) });
      assert.deepEqual(await listed(s), []);
    });

    test("what stands still for a snapshot alone is listed as running", async (context) => {
      const s = await subject(context);
      const claimed = await s.won(await s.running(), { kind: "claim-snapshot", claim, sealed: [] });
      const pausing = await s.won(await s.running(), { kind: "claim-pause", claim, sealed: [] });
      for (const [state, record] of [
        ["running", claimed],
        ["paused", pausing],
      ] as const) {
        const query = { states: [state], metadata: {}, order: "desc", limit: 9 } as const;
        const found = await s.store.sandboxes.list(s.tenantId, query);
        assert.deepEqual(
          found.map(({ sandboxId }) => sandboxId),
          [record.sandboxId],
        );
      }
    });

    test("of one that was killed meanwhile nothing is kept; of one that is killed later all is", async (context) => {
      const s = await subject(context);
      const claimed = await s.won(await s.running(), { kind: "claim-snapshot", claim, sealed: [] });
      await s.won(claimed, { kind: "claim-kill", claim });
      await s.stale(await s.won(await s.running(), { kind: "claim-kill", claim }), {
        kind: "keep-snapshot",
        kept: draft(claimed),
      });
      const { kept, source } = await keep(s, await s.running());
      const killing = await s.won(source, { kind: "claim-kill", claim });
      await s.won(killing, { kind: "finish-kill" });
      await s.store.sandboxes.purge(Number.MAX_SAFE_INTEGER, 10);
      assert.deepEqual(await listed(s), [kept.snapshotId]);
      await child(s, kept);
    });

    test("lists the newest first, page by page, by sandbox and by name, and never a fork's", async (context) => {
      const s = await subject(context);
      const first = await keep(s, await s.running(), { createdAtMs: 10 });
      const second = await keep(s, first.source, { createdAtMs: 20, name: "n:default" });
      const third = await keep(s, await s.running(), { createdAtMs: 20 });
      await keep(s, second.source, { createdAtMs: 30, heldUntilMs: 99 });
      const order = [second.kept, third.kept]
        .toSorted((a, b) => (a.snapshotId < b.snapshotId ? 1 : -1))
        .concat(first.kept);
      assert.deepEqual(
        await listed(s),
        order.map(({ snapshotId }) => snapshotId),
      );
      const pages: SnapshotId[] = [];
      for (let after = order[0]; after !== undefined; ) {
        const [next] = await s.store.sandboxes.listKept(s.tenantId, { limit: 1, after });
        after = next;
        if (next !== undefined) pages.push(next.snapshotId);
      }
      assert.deepEqual(
        pages,
        order.slice(1).map(({ snapshotId }) => snapshotId),
      );
      const { sandboxId } = first.source;
      assert.deepEqual(await listed(s, { sandboxId }), [second.kept.snapshotId, first.kept.snapshotId]);
      assert.deepEqual(await listed(s, { name: "n:default" }), [second.kept.snapshotId]);
      assert.deepEqual(await listed(s, { name: "n:other" }), []);
    });

    test("a name is one snapshot's at a time: a later one takes it, and the earlier is released", async (context) => {
      const s = await subject(context);
      const first = await keep(s, await s.running(), { name: "n:default" });
      const other = await keep(s, first.source, { name: "n:v2" });
      const second = await keep(s, other.source, { name: "n:default" });
      assert.deepEqual(await listed(s, { name: "n:default" }), [second.kept.snapshotId]);
      assert.deepEqual(await begin(s, first.kept), { kind: "origin-gone" });
      assert.equal((await listed(s)).length, 2);
      const neighbour = await new StoreSubject(s.store).prepare();
      await keep(neighbour, await neighbour.running(), { name: "n:default" });
      assert.deepEqual(await listed(s, { name: "n:default" }), [second.kept.snapshotId]);
    });

    test("no tenant sees, begins with, or releases another's", async (context) => {
      const s = await subject(context);
      const { kept } = await keep(s, await s.running(), { name: "n:default" });
      const other = await new StoreSubject(s.store).prepare();
      const { sandboxes } = s.store;
      assert.equal(await sandboxes.keptSnapshot(other.tenantId, kept.snapshotId), undefined);
      assert.deepEqual(await listed(other, { name: "n:default" }), []);
      assert.deepEqual(await needed(s, other.tenantId), []);
      assert.equal(await sandboxes.releaseKept(other.tenantId, kept.snapshotId), false);
      assert.deepEqual(await begin(other, kept), { kind: "origin-gone" });
      assert.deepEqual(await needed(s), [kept.snapshotId]);
      assert.equal(await sandboxes.keptSnapshot(newTenantId(random), kept.snapshotId), undefined);
    });

    test("a released one is begun with no more, and forgotten when nothing is being created from it", async (context) => {
      const s = await subject(context);
      const { sandboxes } = s.store;
      const { kept } = await keep(s, await s.running());
      const begun = await child(s, kept);
      assert.deepEqual(begun.origin, {
        kind: "fork",
        snapshotId: kept.snapshotId,
        parentManifest: kept.digest,
      });
      assert.equal(await sandboxes.releaseKept(s.tenantId, kept.snapshotId), true);
      assert.equal(await sandboxes.releaseKept(s.tenantId, kept.snapshotId), false, "only once");
      assert.deepEqual(await listed(s), []);
      assert.deepEqual(await begin(s, kept), { kind: "origin-gone" });
      assert.equal(await sandboxes.purgeKept(1e9, 10), 0);
      assert.deepEqual(await needed(s), [kept.snapshotId], "the child still needs it");
      assert.equal((await sandboxes.keptSnapshot(s.tenantId, kept.snapshotId))?.digest, kept.digest);
      const running = await s.publish(begun);
      assert.equal(running.origin?.snapshotId, kept.snapshotId, "what it began with is not forgotten");
      assert.equal(await sandboxes.purgeKept(1, 10), 1);
      assert.deepEqual(await needed(s), []);
    });

    test("a fork's is kept until its time is over; one that is not deleted, for ever", async (context) => {
      const s = await subject(context);
      const { kept: fork, source } = await keep(s, await s.running(), { heldUntilMs: 5000 });
      const { kept } = await keep(s, source);
      const failed = await child(s, fork);
      await s.won(failed, { kind: "fail", reason: "no" });
      assert.equal(await s.store.sandboxes.purgeKept(4999, 10), 0);
      assert.equal(await s.store.sandboxes.purgeKept(5000, 10), 1);
      assert.deepEqual(await begin(s, fork), { kind: "origin-gone" });
      assert.equal(await s.store.sandboxes.purgeKept(Number.MAX_SAFE_INTEGER, 10), 0);
      assert.deepEqual(await needed(s), [kept.snapshotId]);
    });

    test("R-5: nothing begins with another manifest than the snapshot's", async (context) => {
      const s = await subject(context);
      const { kept } = await keep(s, await s.running());
      const origin: NewSandbox["origin"] = {
        kind: "template",
        snapshotId: kept.snapshotId,
        parentManifest: digestOf("another"),
      };
      assert.deepEqual(await s.store.sandboxes.begin(s.draft({ origin })), { kind: "origin-gone" });
    });
  });
}
