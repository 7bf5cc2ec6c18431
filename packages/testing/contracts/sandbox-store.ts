// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import {
  type ChangeOutcome,
  type Digest,
  type EnrolmentStore,
  type ExecutionIdentity,
  firstGeneration,
  type Generation,
  type InstallationStore,
  type NewSandbox,
  newActivationId,
  newSandboxId,
  newTenantId,
  newWorkerId,
  nextGeneration,
  parseDigest,
  type ReceiverStore,
  type SandboxChange,
  type SandboxRecord,
  type SandboxStore,
  type SideEffect,
  type SigningKeyStore,
  type TenantId,
  type WorkerId,
} from "@space/model";
import { SeededRandom } from "../src/seeded-random.ts";
import type { VirtualClock } from "../src/virtual-clock.ts";

export interface OpenedStore {
  readonly sandboxes: SandboxStore;
  readonly installation: InstallationStore;
  readonly signingKeys: SigningKeyStore;
  readonly receivers: ReceiverStore;
  readonly enrolments: EnrolmentStore;
  /** The time that the store takes for "now". */
  readonly clock: VirtualClock;
  /** Closes and opens it again on the same storage. */
  reopen(): Promise<OpenedStore>;
  dispose(): Promise<void>;
}

const random = new SeededRandom("sandbox store");
const digestOf = (text: string): Digest => parseDigest(createHash("sha256").update(text).digest("hex"));
const claim = { owner: "one", untilMs: 50_000 };

/** A store with one tenant, and the steps that most tests need. */
class Subject {
  readonly store: OpenedStore;
  readonly tenantId: TenantId = newTenantId(random);
  readonly workerId: WorkerId = newWorkerId(random);

  constructor(store: OpenedStore) {
    this.store = store;
  }

  async prepare(sandboxLimit = 10): Promise<this> {
    const { tenantId } = this;
    await this.store.installation.addTenant({ tenantId, name: tenantId, sandboxLimit, createdAtMs: 1 });
    return this;
  }

  identity(of?: SandboxRecord, generation: Generation = firstGeneration): ExecutionIdentity {
    return {
      sandboxId: of?.sandboxId ?? newSandboxId(random),
      generation,
      placement: { workerId: this.workerId, substrate: "namespace" },
      activation: { id: newActivationId(random), attempt: 1 },
    };
  }

  draft(more: Partial<NewSandbox> = {}): NewSandbox {
    return {
      identity: this.identity(),
      tenantId: this.tenantId,
      template: "base",
      createdAtMs: 1000,
      endAtMs: 9000,
      onTimeout: "kill",
      keepMemory: true,
      autoResume: false,
      autoRecover: false,
      timeoutMs: 8000,
      metadata: {},
      variables: {},
      limits: { memoryBytes: 1, cpus: 0.5, processes: 2, diskBytes: 3 },
      claim,
      ...more,
    };
  }

  async begun(more: Partial<NewSandbox> = {}): Promise<SandboxRecord> {
    const outcome = await this.store.sandboxes.begin(this.draft(more));
    assert.equal(outcome.kind, "begun");
    return outcome.record;
  }

  async running(more: Partial<NewSandbox> = {}, startedAtMs = 2000): Promise<SandboxRecord> {
    return this.publish(await this.begun(more), startedAtMs);
  }

  publish(record: SandboxRecord, startedAtMs = 2000): Promise<SandboxRecord> {
    const token = `certificate ${record.sandboxId} ${record.generation}`;
    return this.won(record, {
      kind: "publish",
      certificate: { token, digest: digestOf(token), previous: record.certificateHead, publicKey: "key" },
      startedAtMs,
      endAtMs: startedAtMs + 8000,
    });
  }

  async paused(more: Partial<NewSandbox> = {}, startedAtMs = 2000): Promise<SandboxRecord> {
    return this.pause(await this.running(more, startedAtMs));
  }

  async pause(record: SandboxRecord, frozenOn: WorkerId | null = null): Promise<SandboxRecord> {
    const pausing = await this.won(record, { kind: "claim-pause", claim, sealed: [] });
    const countersigned = `manifest ${record.sandboxId} ${record.generation}`;
    return this.won(pausing, {
      kind: "commit-pause",
      manifest: {
        countersigned,
        digest: digestOf(countersigned),
        previous: record.snapshot?.digest ?? null,
        memory: "frozen-on-worker",
        sizeBytes: 7,
      },
      frozenOn,
      endAtMs: 3000,
    });
  }

  resuming(record: SandboxRecord): Promise<SandboxRecord> {
    const identity = this.identity(record, nextGeneration(record.generation));
    return this.won(record, { kind: "claim-resume", identity, claim, sealed: [] });
  }

  async change(
    on: SandboxRecord,
    change: SandboxChange,
    effects: readonly SideEffect[] = [],
  ): Promise<ChangeOutcome> {
    return this.store.sandboxes.change({ on, change, effects });
  }

  async won(on: SandboxRecord, change: SandboxChange): Promise<SandboxRecord> {
    const outcome = await this.change(on, change);
    assert.equal(outcome.kind, "won", change.kind);
    return outcome.record;
  }

  async stale(on: SandboxRecord, change: SandboxChange): Promise<void> {
    const before = await this.store.sandboxes.read(on.sandboxId);
    assert.deepEqual(await this.change(on, change), { kind: "stale" }, change.kind);
    assert.deepEqual(await this.store.sandboxes.read(on.sandboxId), before);
  }
}

/** The whole contract of {@link SandboxStore}; every adapter runs it. */
export function sandboxStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  const subject = async (context: { after(fn: () => Promise<void>): void }, limit = 10): Promise<Subject> => {
    const store = await open();
    context.after(() => store.dispose());
    return new Subject(store).prepare(limit);
  };

  describe(`${name}: sandboxes`, () => {
    test("a new sandbox is creating, claimed, generation 1, and read back as it was written", async (context) => {
      const s = await subject(context);
      const draft = s.draft({ metadata: { __proto__x: "1", "a b": "ü" }, variables: { PATH: "/bin" } });
      const outcome = await s.store.sandboxes.begin(draft);
      assert.equal(outcome.kind, "begun");
      const { record } = outcome;
      assert.equal(record.state, "creating");
      assert.equal(record.generation, 1n);
      assert.equal(record.execution.state, "starting");
      assert.deepEqual(record.execution.identity, draft.identity);
      assert.deepEqual(record.claim, claim);
      assert.deepEqual(record.metadata, draft.metadata);
      assert.deepEqual(record.variables, draft.variables);
      assert.deepEqual(record.limits, draft.limits);
      assert.deepEqual(await s.store.sandboxes.read(record.sandboxId), record);
    });

    test("R-1: a whole life keeps one generation per run, and each ended execution ended", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      assert.equal(running.execution.state, "active");
      assert.equal(running.claim, null);
      const paused = await s.pause(running);
      assert.equal(paused.execution.state, "ended");
      assert.equal(paused.endAtMs, 3000);
      assert.equal(paused.startedAtMs, 2000);
      const resuming = await s.resuming(paused);
      assert.equal(resuming.generation, 2n);
      const back = await s.won(resuming, { kind: "abandon-resume", reason: "substrate/failed" });
      assert.equal(back.state, "paused");
      assert.deepEqual(back.snapshot, paused.snapshot);
      const again = await s.publish(await s.resuming(back), 5000);
      assert.equal(again.generation, 3n, "a generation is never used twice, also after a failed start");
      assert.equal(again.startedAtMs, 5000);
      assert.equal(again.reason, null);
    });

    test("R-5: certificates are one line, and a second one with the same previous loses", async (context) => {
      const s = await subject(context);
      const resumed = await s.publish(await s.resuming(await s.paused()));
      const { certificates, manifests } = await s.store.sandboxes.chain(resumed.sandboxId);
      const name = `certificate ${resumed.sandboxId}`;
      assert.deepEqual(certificates, [`${name} 2`, `${name} 1`]);
      assert.deepEqual(manifests, [`manifest ${resumed.sandboxId} 1`]);
      assert.equal(resumed.certificateHead, digestOf(`${name} 2`));
      const third = await s.resuming(await s.pause(resumed));
      const certificate = {
        token: "x",
        digest: digestOf("x"),
        previous: digestOf(`${name} 1`),
        publicKey: "key",
      };
      await s.stale(third, { kind: "publish", certificate, startedAtMs: 1, endAtMs: 2 });
    });

    test("a manifest whose previous is not the head is not committed", async (context) => {
      const s = await subject(context);
      const resumed = await s.publish(await s.resuming(await s.paused()));
      const pausing = await s.won(resumed, { kind: "claim-pause", claim, sealed: [] });
      const manifest = {
        countersigned: "m",
        digest: digestOf("m"),
        previous: null,
        memory: "none" as const,
        sizeBytes: 1,
      };
      await s.stale(pausing, { kind: "commit-pause", manifest, frozenOn: null, endAtMs: 1 });
    });

    test("a change on an old revision loses and writes nothing, effects included", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      await s.won(running, { kind: "set-end", endAtMs: 99_000 });
      await s.stale(running, { kind: "claim-pause", claim, sealed: [] });
      const effect: SideEffect = {
        kind: "retire",
        identity: running.execution.identity,
        keepFrozen: null,
      };
      assert.equal((await s.change(running, { kind: "claim-kill", claim }, [effect])).kind, "stale");
      assert.deepEqual(await s.store.sandboxes.pending({ workerId: s.workerId, limit: 10 }), []);
    });

    test("of two changes made at once on one record exactly one wins", async (context) => {
      const s = await subject(context);
      const running = await s.running();
      const outcomes = await Promise.all([
        s.change(running, { kind: "claim-pause", claim, sealed: [] }),
        s.change(running, { kind: "claim-kill", claim }),
        s.change(running, { kind: "set-end", endAtMs: 1 }),
      ]);
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        ["won", "stale", "stale"],
      );
    });

    test("each change is refused in every state that it is not for", async (context) => {
      const s = await subject(context, 100);
      const creating = await s.begun();
      const running = await s.running();
      const pausing = await s.won(await s.running(), { kind: "claim-pause", claim, sealed: [] });
      const paused = await s.paused();
      const resuming = await s.resuming(await s.paused());
      const lost = await s.won(await s.running(), { kind: "lose", reason: "gone" });
      const failed = await s.won(await s.begun(), { kind: "fail", reason: "no" });
      const killing = await s.won(await s.running(), { kind: "claim-kill", claim });
      const killed = await s.won(await s.won(await s.running(), { kind: "claim-kill", claim }), {
        kind: "finish-kill",
      });
      const all = { creating, running, pausing, paused, resuming, lost, failed, killing, killed };
      const allowed: Readonly<Record<SandboxChange["kind"], readonly (keyof typeof all)[]>> = {
        publish: ["creating", "resuming"],
        fail: ["creating"],
        "claim-pause": ["running"],
        "claim-snapshot": ["running"],
        "keep-snapshot": ["pausing"],
        "abort-pause": ["pausing"],
        "commit-pause": ["pausing"],
        "commit-move": ["pausing"],
        "claim-resume": ["paused"],
        "abandon-resume": ["resuming"],
        lose: ["running", "pausing"],
        "claim-kill": ["creating", "running", "pausing", "paused", "resuming", "lost", "failed"],
        "finish-kill": ["killing"],
        "set-end": ["running"],
        "take-over": ["creating", "pausing", "resuming", "killing"],
        "forget-frozen": ["paused"],
      };
      for (const [state, record] of Object.entries(all)) {
        for (const change of sampleChanges(s, record)) {
          if (!allowed[change.kind].some((name) => name === state)) await s.stale(record, change);
        }
      }
    });

    test("a lost sandbox without a snapshot cannot be resumed, one with a snapshot can", async (context) => {
      const s = await subject(context);
      const bare = await s.won(await s.running(), { kind: "lose", reason: "gone" });
      const next = s.identity(bare, nextGeneration(bare.generation));
      await s.stale(bare, { kind: "claim-resume", identity: next, claim, sealed: [] });
      const resumed = await s.publish(await s.resuming(await s.paused()));
      const lost = await s.won(resumed, { kind: "lose", reason: "gone" });
      assert.equal((await s.resuming(lost)).generation, 3n);
    });

    test("statement 5: what was lost is lost again when its resume fails, and says what is missing until there is a newer snapshot", async (context) => {
      const s = await subject(context);
      const lost = await s.won(await s.publish(await s.resuming(await s.paused())), {
        kind: "lose",
        reason: "gone",
      });
      assert.equal(lost.lostGeneration, 2n);
      const failed = await s.won(await s.resuming(lost), { kind: "abandon-resume", reason: "no" });
      assert.deepEqual([failed.state, failed.lostGeneration], ["lost", 2n]);
      const recovered = await s.publish(await s.resuming(failed));
      assert.deepEqual([recovered.state, recovered.lostGeneration], ["running", 2n]);
      const intact = await s.won(await s.resuming(await s.paused()), {
        kind: "abandon-resume",
        reason: "no",
      });
      assert.deepEqual([intact.state, intact.lostGeneration], ["paused", null]);
    });

    test("killed is a tombstone: it stays, knows nothing of the caller's, and nothing changes it", async (context) => {
      const s = await subject(context);
      const running = await s.running({ metadata: { a: "b" }, variables: { SECRET: "x" } });
      const killed = await s.won(await s.won(running, { kind: "claim-kill", claim }), {
        kind: "finish-kill",
      });
      assert.equal(killed.state, "killed");
      assert.deepEqual([killed.metadata, killed.variables, killed.snapshot], [{}, {}, null]);
      for (const change of sampleChanges(s, killed)) await s.stale(killed, change);
    });

    test("everything is there after closing and opening again", async (context) => {
      const s = await subject(context);
      const paused = await s.paused();
      const { sandboxes } = await s.store.reopen();
      assert.deepEqual(await sandboxes.read(paused.sandboxId), paused);
      const stored = await sandboxes.manifest(paused.sandboxId, paused.snapshot?.digest ?? digestOf("no"));
      assert.deepEqual(stored, {
        countersigned: `manifest ${paused.sandboxId} 1`,
        executionPublicKey: "key",
      });
    });
  });
}

/** One change of each kind, as it would be made on this record. */
export function sampleChanges(s: Subject, record: SandboxRecord): readonly SandboxChange[] {
  const digest = digestOf(`sample ${record.sandboxId}`);
  const next = s.identity(record, nextGeneration(record.generation));
  const certificate = { token: "t", digest, previous: record.certificateHead, publicKey: "key" };
  const previous = record.snapshot?.digest ?? null;
  const manifest = { countersigned: "m", digest, previous, memory: "none" as const, sizeBytes: 1 };
  return [
    { kind: "publish", certificate, startedAtMs: 1, endAtMs: 2 },
    { kind: "fail", reason: "no" },
    { kind: "claim-pause", claim, sealed: [] },
    { kind: "abort-pause" },
    { kind: "commit-pause", manifest, frozenOn: null, endAtMs: 1 },
    { kind: "commit-move", manifest, frozenOn: null, identity: next, claim },
    { kind: "claim-resume", identity: next, claim, sealed: [] },
    { kind: "abandon-resume", reason: "no" },
    { kind: "lose", reason: "no" },
    { kind: "claim-kill", claim },
    { kind: "finish-kill" },
    { kind: "set-end", endAtMs: 1 },
    { kind: "take-over", claim },
    { kind: "forget-frozen" },
  ];
}

export { claim as sampleClaim, digestOf, Subject as StoreSubject };
