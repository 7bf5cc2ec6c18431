// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ListSandboxes, newWorkerId, type SandboxRecord, type SideEffect } from "@space/model";
import { SeededRandom } from "../src/seeded-random.ts";
import { sampleClaim as claim, digestOf, type OpenedStore, StoreSubject } from "./sandbox-store.ts";

const random = new SeededRandom("sandbox store queries");
const everything: ListSandboxes = { states: ["running", "paused"], metadata: {}, order: "desc", limit: 100 };
const ids = (records: readonly SandboxRecord[]): readonly string[] =>
  records.map(({ sandboxId }) => sandboxId);

/** Limits, lists, what is due, and the outbox: the second half of the contract. */
export function sandboxStoreQueryContract(name: string, open: () => Promise<OpenedStore>): void {
  const subject = async (
    context: { after(fn: () => Promise<void>): void },
    limit = 10,
  ): Promise<StoreSubject> => {
    const store = await open();
    context.after(() => store.dispose());
    return new StoreSubject(store).prepare(limit);
  };
  const list = (s: StoreSubject, more: Partial<ListSandboxes> = {}): Promise<readonly SandboxRecord[]> =>
    s.store.sandboxes.list(s.tenantId, { ...everything, ...more });

  describe(`${name}: limits and keys`, () => {
    test("the tenant's limit counts what runs or is about to, also when many begin at once", async (context) => {
      const s = await subject(context, 2);
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => s.store.sandboxes.begin(s.draft())));
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        ["begun", "begun", "limit", "limit", "limit"],
      );
      assert.deepEqual(outcomes[4], { kind: "limit", limit: 2 });
      const first = outcomes[0];
      assert.equal(first?.kind, "begun");
      await s.won(first.record, { kind: "fail", reason: "no" });
      const paused = await s.paused();
      await s.begun();
      const identity = s.identity(paused, 2n as SandboxRecord["generation"]);
      assert.deepEqual(await s.change(paused, { kind: "claim-resume", identity, claim, sealed: [] }), {
        kind: "limit",
        limit: 2,
      });
    });

    test("one tenant's sandboxes do not count against another's limit", async (context) => {
      const s = await subject(context, 1);
      await s.begun();
      const other = await new StoreSubject(s.store).prepare(1);
      await other.begun();
    });

    test("the same idempotency key names the first sandbox; a failed one gives its key back", async (context) => {
      const s = await subject(context);
      const idempotency = { key: "k", fingerprint: digestOf("request") };
      const [first, second] = await Promise.all([
        s.store.sandboxes.begin(s.draft({ idempotency })),
        s.store.sandboxes.begin(s.draft({ idempotency })),
      ]);
      assert.equal(first.kind, "begun");
      assert.deepEqual(second, {
        kind: "repeated",
        sandboxId: first.record.sandboxId,
        fingerprint: idempotency.fingerprint,
      });
      await s.won(first.record, { kind: "fail", reason: "no" });
      await s.begun({ idempotency });
    });
  });

  describe(`${name}: lists`, () => {
    test("one order by start time over both states, and pages that neither repeat nor omit", async (context) => {
      const s = await subject(context);
      const a = await s.paused({}, 3000);
      const b = await s.running({}, 5000);
      const c = await s.paused({}, 5000);
      const d = await s.running({}, 4000);
      const same = [b.sandboxId, c.sandboxId].toSorted();
      const ascending = [a.sandboxId, d.sandboxId, ...same];
      assert.deepEqual(ids(await list(s, { order: "asc" })), ascending);
      assert.deepEqual(ids(await list(s)), ascending.toReversed());
      const seen: string[] = [];
      for (let after: ListSandboxes["after"]; ; ) {
        const page = await list(s, { limit: 1, ...(after === undefined ? {} : { after }) });
        const last = page[0];
        if (last === undefined) break;
        seen.push(last.sandboxId);
        after = { startedAtMs: last.startedAtMs, sandboxId: last.sandboxId };
      }
      assert.deepEqual(seen, ascending.toReversed());
    });

    test("shows as paused what a connect brings back, and never what is over, begun, or another's", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      const paused = await s.paused();
      const pausing = await s.won(await s.running(), { kind: "claim-pause", claim, sealed: [] });
      const resuming = await s.resuming(await s.paused());
      const recoverable = await s.won(await s.publish(await s.resuming(await s.paused())), {
        kind: "lose",
        reason: "gone",
      });
      await s.begun();
      const bare = await s.won(await s.running(), { kind: "lose", reason: "gone" });
      await s.won(await s.running(), { kind: "claim-kill", claim });
      await (await new StoreSubject(s.store).prepare()).running();
      assert.deepEqual(ids(await list(s, { states: ["running"] })), [running.sandboxId]);
      assert.deepEqual(
        ids(await list(s, { states: ["paused"] })).toSorted(),
        ids([paused, pausing, resuming]).toSorted(),
      );
      assert.deepEqual(
        ids(await list(s, { states: ["lost"] })).toSorted(),
        ids([recoverable, bare]).toSorted(),
        "statement 5: only for who asks for them",
      );
      assert.equal((await list(s)).length, 4);
    });

    test("filters by metadata (all of it, exactly), template and start", async (context) => {
      const s = await subject(context);
      const both = await s.running({ metadata: { a: "1", "we.ird $key": "2" } }, 2000);
      const one = await s.running({ metadata: { a: "1" } }, 3000);
      await s.running({ metadata: { a: "11" } }, 4000);
      assert.deepEqual(ids(await list(s, { metadata: { a: "1" } })), [one.sandboxId, both.sandboxId]);
      assert.deepEqual(ids(await list(s, { metadata: { a: "1", "we.ird $key": "2" } })), [both.sandboxId]);
      assert.deepEqual(ids(await list(s, { startedAfterMs: 3000 })).length, 1);
      assert.deepEqual(await list(s, { template: "other" }), []);
      assert.deepEqual(await list(s, { states: [] }), []);
    });
  });

  describe(`${name}: what needs somebody`, () => {
    test("due: what runs past its end, and what is lost for good", async (context) => {
      const s = await subject(context);
      const running = await s.running({}, 1000);
      await s.running({}, 5000);
      await s.paused({}, 1000);
      const gone = await s.won(await s.running({ onTimeout: "pause" }, 1000), {
        kind: "lose",
        reason: "gone",
      });
      const back = await s.publish(await s.resuming(await s.paused({ onTimeout: "pause" })), 1000);
      await s.won(back, { kind: "lose", reason: "gone" });
      const due = await s.store.sandboxes.due(9000, 10);
      assert.deepEqual(ids(due).toSorted(), ids([running, gone]).toSorted());
      assert.deepEqual(await s.store.sandboxes.due(8999, 10), []);
      assert.equal((await s.store.sandboxes.due(9000, 1)).length, 1);
    });

    test("abandoned: claims that ran out, until another owner takes them over", async (context) => {
      const s = await subject(context);
      const begun = await s.begun();
      await s.running({}, 0);
      assert.deepEqual(await s.store.sandboxes.abandoned(claim.untilMs - 1, 10), []);
      assert.deepEqual(ids(await s.store.sandboxes.abandoned(claim.untilMs, 10)), [begun.sandboxId]);
      await s.won(begun, { kind: "take-over", claim: { owner: "two", untilMs: claim.untilMs + 1 } });
      assert.deepEqual(await s.store.sandboxes.abandoned(claim.untilMs, 10), []);
    });

    test("R-3, R-4: a start that is taken over is its next attempt; what runs keeps its identity, whoever drives it", async (context) => {
      const s = await subject(context);
      const begun = await s.begun();
      const other = { owner: "two/1", untilMs: claim.untilMs };
      const { execution } = await s.won(begun, { kind: "take-over", claim: other });
      const { activation, ...route } = begun.execution.identity;
      assert.deepEqual(execution.identity, { ...route, activation: { id: activation.id, attempt: 2 } });
      assert.deepEqual((await s.store.sandboxes.read(begun.sandboxId))?.execution, execution);
      const running = await s.running();
      const pausing = await s.won(running, { kind: "claim-pause", claim, sealed: [] });
      const taken = await s.won(pausing, { kind: "take-over", claim: other });
      assert.deepEqual(taken.execution, running.execution);
    });

    test("R-16: no lease is recorded while a retirement is on its way to the worker", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      const { identity } = running.execution;
      const grant = { grantedAtMs: 1000, termMs: 60_000 };
      assert.deepEqual(await s.store.receivers.recordLease(s.workerId, grant), grant);
      const [order] = await s.store.sandboxes.enqueue([{ kind: "retire", identity, keepFrozen: null }]);
      const next = { grantedAtMs: 2000, termMs: 60_000 };
      assert.equal(await s.store.receivers.recordLease(s.workerId, next), undefined);
      assert.deepEqual(await s.store.receivers.recordLease(newWorkerId(random), next), next);
      await s.store.receivers.acknowledgeOrder(s.workerId, order?.id ?? 0);
      assert.deepEqual(await s.store.receivers.recordLease(s.workerId, next), next);
    });

    test("a worker's load and its sandboxes are what has not ended there, and what is frozen there", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      const frozen = await s.pause(await s.running(), s.workerId);
      const plain = await s.paused();
      const held = async (): Promise<number> => (await s.store.sandboxes.load()).get(s.workerId) ?? 0;
      assert.equal(await held(), 2);
      const there = await s.store.sandboxes.onWorker(s.workerId);
      assert.deepEqual(ids(there).toSorted(), ids([running, frozen]).toSorted());
      assert.deepEqual(ids(await s.store.sandboxes.live()).toSorted(), ids([running, frozen]).toSorted());
      const forgotten = await s.won(frozen, { kind: "forget-frozen" });
      assert.equal(forgotten.snapshot?.frozenOn, null);
      assert.equal(forgotten.snapshot?.memory, "frozen-on-worker", "the signed manifest says what was");
      await s.won(await s.won(running, { kind: "claim-kill", claim }), { kind: "finish-kill" });
      assert.equal(await held(), 0);
      await s.resuming(plain);
      assert.equal(await held(), 1);
    });

    test("tombstones are purged when old enough and nothing is pending for them", async (context) => {
      const s = await subject(context);
      const { sandboxes, clock } = s.store;
      const killed = await s.won(await s.won(await s.running(), { kind: "claim-kill", claim }), {
        kind: "finish-kill",
      });
      const owing = await s.running();
      const effect: SideEffect = { kind: "retire", identity: owing.execution.identity, keepFrozen: null };
      const killing = await s.change(owing, { kind: "claim-kill", claim }, [effect]);
      assert.equal(killing.kind, "won");
      await s.won(killing.record, { kind: "finish-kill" });
      assert.equal(await sandboxes.purge(clock.wallMs(), 10), 0);
      assert.equal(await sandboxes.purge(clock.wallMs() + 1, 10), 1);
      assert.equal(await sandboxes.read(killed.sandboxId), undefined);
      await s.store.receivers.acknowledgeOrder(s.workerId, killing.effects[0]?.id ?? 0);
      assert.equal(await sandboxes.purge(clock.wallMs() + 1, 10), 1);
    });
  });

  describe(`${name}: orders that must arrive`, () => {
    test("are kept in order until acknowledged, and not tried before their time", async (context) => {
      const s = await subject(context);
      const { sandboxes } = s.store;
      const running = await s.running();
      const { identity } = running.execution;
      const manifest = digestOf("m");
      const effects: readonly SideEffect[] = [
        { kind: "retire", identity, keepFrozen: manifest },
        { kind: "discard", sandboxId: running.sandboxId, workerId: s.workerId, manifest },
      ];
      const [retire, discard] = await sandboxes.enqueue(effects);
      const query = { workerId: s.workerId, limit: 10 };
      assert.deepEqual(await sandboxes.pending(query), [retire, discard]);
      await sandboxes.postpone(retire?.id ?? 0, 5000);
      assert.deepEqual(await sandboxes.pending({ ...query, dueMs: 4999 }), [discard]);
      assert.deepEqual(await sandboxes.pending({ ...query, dueMs: 5000, sandboxId: running.sandboxId }), [
        { ...retire, attempts: 1, notBeforeMs: 5000 },
        discard,
      ]);
      assert.deepEqual(await sandboxes.pending({ ...query, afterId: retire?.id ?? 0 }), [discard]);
      await s.store.receivers.acknowledgeOrder(newWorkerId(random), discard?.id ?? 0); // another's, so it stays
      await s.store.receivers.acknowledgeOrder(s.workerId, retire?.id ?? 0);
      const reopened = await s.store.reopen();
      assert.deepEqual(await reopened.sandboxes.pending(query), [discard]);
      assert.deepEqual(await reopened.sandboxes.pending({ ...query, workerId: newWorkerId(random) }), []);
    });

    test("a newer order replaces the older one, and acknowledging the older one leaves it", async (context) => {
      const s = await subject(context);
      const { sandboxes } = s.store;
      const { identity } = (await s.running()).execution;
      const [older] = await sandboxes.enqueue([{ kind: "retire", identity, keepFrozen: digestOf("m") }]);
      const [newer] = await sandboxes.enqueue([{ kind: "retire", identity, keepFrozen: null }]);
      await s.store.receivers.acknowledgeOrder(s.workerId, older?.id ?? 0);
      assert.deepEqual(await sandboxes.pending({ workerId: s.workerId, limit: 10 }), [newer]);
    });
  });
}
