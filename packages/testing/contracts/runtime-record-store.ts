// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import {
  type ActivationRecord,
  type ActivationStore,
  type ExecutionIdentity,
  freezeIdentity,
  isSpaceError,
  parseActivationId,
  parseDigest,
  parseGeneration,
  parseSandboxId,
  parseWorkerId,
  type RuntimeRecord,
  type RuntimeRecordStore,
  Secret,
  type SuccessionStore,
} from "@space/model";

export type WorkerStore = RuntimeRecordStore & ActivationStore & SuccessionStore;

/** How one adapter is opened again and again on the same storage. */
export interface WorkerStoreSubject {
  open(): WorkerStore;
  dispose(): void;
}

const failed = (error: unknown): boolean => isSpaceError(error, "store/failed");

interface IdentityParts {
  readonly sandbox?: string;
  readonly generation?: number;
  readonly attempt?: number;
  readonly activation?: string;
  readonly worker?: string;
}

function identityOf(parts: IdentityParts = {}): ExecutionIdentity {
  const generation = parts.generation ?? 1;
  return freezeIdentity({
    sandboxId: parseSandboxId(`i${(parts.sandbox ?? "a").repeat(20)}`),
    generation: parseGeneration(String(generation)),
    placement: { workerId: parseWorkerId(`wrk_${(parts.worker ?? "w").repeat(16)}`), substrate: "namespace" },
    activation: {
      id: parseActivationId(`act_${(parts.activation ?? "abcdefgh".charAt(generation)).repeat(26)}`),
      attempt: parts.attempt ?? 1,
    },
  });
}

function recordOf(
  identity: ExecutionIdentity,
  epoch: bigint,
  state: RuntimeRecord["state"] = "installed",
): RuntimeRecord {
  return {
    identity,
    state,
    certificate: `certificate of ${identity.activation.id}`,
    certificateDigest: parseDigest("c".repeat(64)),
    epoch,
    hostBootId: "boot",
    evidence: "{}",
  };
}

function activationOf(identity: ExecutionIdentity, more: Partial<ActivationRecord> = {}): ActivationRecord {
  return {
    identity,
    phase: "running",
    startedAs: identity.activation.id,
    privateKey: new Secret("-----BEGIN PRIVATE KEY-----"),
    publicKey: "k".repeat(43),
    activationSecret: new Secret(new Uint8Array(32).fill(7)),
    template: "base",
    variables: { LANG: "C.UTF-8" },
    evidence: {
      hostBootId: "boot",
      guest: { pid: 7, startTime: "99", executable: { device: "1", inode: "2" }, uid: 100_000 },
      socketPath: "/run/guest.sock",
      socketInode: "55",
      cgroup: "/space/x",
    },
    restoredFrom: null,
    memory: false,
    manifest: null,
    ...more,
  };
}

const plain = (activation: ActivationRecord): unknown => ({
  ...activation,
  privateKey: activation.privateKey.reveal(),
  activationSecret: [...activation.activationSecret.reveal()],
});

/** The whole of what `RuntimeRecordStore` and `ActivationStore` promise. */
export function runtimeRecordStoreContract(name: string, make: () => WorkerStoreSubject): void {
  const check = (title: string, body: (store: WorkerStore, reopen: () => WorkerStore) => void): void => {
    test(title, () => {
      const subject = make();
      let store = subject.open();
      try {
        body(store, () => {
          store.close();
          store = subject.open();
          return store;
        });
      } finally {
        store.close();
        subject.dispose();
      }
    });
  };
  describe(name, () => {
    recordCases(check);
    ruleCases(check);
    bundleCases(check);
    successionCases(check);
    activationCases(check);
    test("a second process on the same storage is refused until the first is gone", () => {
      const subject = make();
      const first = subject.open();
      assert.throws(
        () => subject.open(),
        (error) => isSpaceError(error, "data/in-use"),
      );
      first.close();
      subject.open().close();
      subject.dispose();
    });
  });
}

type Check = (title: string, body: (store: WorkerStore, reopen: () => WorkerStore) => void) => void;

function recordCases(check: Check): void {
  check("an absent record is undefined", (store) => {
    assert.equal(store.read(identityOf().sandboxId), undefined);
    assert.deepEqual(store.all(), []);
  });

  check("a record is there at once and after the next start", (store, reopen) => {
    const record = recordOf(identityOf({ generation: 3, attempt: 2 }), 9n);
    assert.equal(store.replace(undefined, record), true);
    assert.deepEqual(store.read(record.identity.sandboxId), record);
    const again = reopen();
    assert.deepEqual(again.read(record.identity.sandboxId), record);
    assert.deepEqual(again.all(), [record]);
  });

  check("numbers above 2^53 survive", (store, reopen) => {
    const identity = { ...identityOf(), generation: parseGeneration("9223372036854775807") };
    store.replace(undefined, recordOf(identity, 2n ** 62n));
    const record = reopen().read(identity.sandboxId);
    assert.equal(record?.identity.generation, 9_223_372_036_854_775_807n);
    assert.equal(record?.epoch, 2n ** 62n);
  });

  check("replaces only what is still as expected (by epoch, state and identity)", (store) => {
    const first = recordOf(identityOf(), 1n);
    assert.equal(store.replace(first, first), false, "absent");
    assert.equal(store.replace(undefined, first), true);
    assert.equal(store.replace(undefined, first), false, "present");
    const second = { ...first, epoch: 2n };
    assert.equal(store.replace({ ...first, epoch: 5n }, second), false);
    assert.equal(store.replace({ ...first, state: "retired" }, second), false);
    assert.equal(store.replace({ ...first, identity: identityOf({ attempt: 2 }) }, second), false);
    assert.deepEqual(store.read(first.identity.sandboxId), first);
    assert.equal(store.replace(first, second), true);
    assert.equal(store.replace(first, second), false, "the late one loses");
  });

  check("records of other sandboxes are apart", (store) => {
    const [a, b] = [recordOf(identityOf({ sandbox: "a" }), 1n), recordOf(identityOf({ sandbox: "b" }), 1n)];
    store.replace(undefined, a);
    assert.equal(store.replace(a, { ...b, epoch: 2n }), false);
    assert.equal(store.replace(undefined, b), true);
    assert.equal(store.all().length, 2);
  });

  check("what was read does not change afterwards", (store) => {
    const record = recordOf(identityOf(), 1n);
    store.replace(undefined, record);
    const held = store.read(record.identity.sandboxId);
    store.replace(record, { ...record, epoch: 2n });
    assert.equal(held?.epoch, 1n);
    assert.ok(Object.isFrozen(held));
  });

  check("pruning forgets the oldest tombstones, never an installed record", (store, reopen) => {
    const retired = ["a", "b", "c"].map((sandbox) => {
      const record = recordOf(identityOf({ sandbox }), 1n);
      store.replace(undefined, record);
      return record;
    });
    const live = recordOf(identityOf({ sandbox: "d" }), 1n);
    store.replace(undefined, live);
    for (const record of [retired[1], retired[0], retired[2]]) {
      if (record !== undefined) store.replace(record, { ...record, state: "retired", epoch: 2n });
    }
    assert.equal(store.prune(2), 1);
    assert.equal(store.prune(2), 0);
    assert.equal(store.read(identityOf({ sandbox: "b" }).sandboxId), undefined);
    const again = reopen();
    assert.deepEqual(
      new Set(again.all().map(({ identity }) => identity.sandboxId.charAt(1))),
      new Set(["a", "c", "d"]),
    );
    assert.equal(again.prune(0), 2);
    assert.deepEqual(again.all(), [live]);
  });
}

function ruleCases(check: Check): void {
  const refuses = (title: string, held: RuntimeRecord, next: RuntimeRecord): void =>
    check(title, (store, reopen) => {
      store.replace(undefined, held);
      assert.throws(() => store.replace(held, next), failed);
      assert.deepEqual(store.read(held.identity.sandboxId), held);
      assert.deepEqual(reopen().read(held.identity.sandboxId), held);
    });
  const at = recordOf(identityOf({ generation: 2, attempt: 2 }), 5n);
  refuses(
    "R-12: a lower generation never replaces a higher one",
    at,
    recordOf(identityOf({ generation: 1 }), 6n),
  );
  refuses(
    "R-12: a lower attempt never replaces a higher one",
    at,
    recordOf(identityOf({ generation: 2, attempt: 1 }), 6n),
  );
  refuses(
    "R-12: one generation never names another process",
    at,
    recordOf(identityOf({ generation: 2, attempt: 3, activation: "z" }), 6n),
  );
  refuses(
    "R-12: one generation never names another placement",
    at,
    recordOf(identityOf({ generation: 2, attempt: 3, worker: "x" }), 6n),
  );
  const tombstone = recordOf(identityOf({ generation: 2 }), 5n, "retired");
  refuses(
    "R-12: a tombstone of this generation never comes back",
    tombstone,
    recordOf(identityOf({ generation: 2, attempt: 2 }), 6n),
  );
  refuses("R-21: the epoch never falls", at, { ...at, epoch: 4n });
  refuses("R-21: another generation has another epoch", at, recordOf(identityOf({ generation: 3 }), 5n));
  refuses("R-21: retirement ends the epoch", at, { ...at, state: "retired" });

  check("R-12: a higher generation replaces a tombstone", (store) => {
    store.replace(undefined, tombstone);
    assert.equal(store.replace(tombstone, recordOf(identityOf({ generation: 3 }), 6n)), true);
  });
  check("R-18: a higher attempt keeps the epoch", (store) => {
    store.replace(undefined, at);
    assert.equal(store.replace(at, recordOf(identityOf({ generation: 2, attempt: 3 }), 5n)), true);
  });
}

function successionCases(check: Check): void {
  check(
    "what binds it to its worker goes on step by step, and a step that was begun outlives a restart",
    (store, reopen) => {
      const tokens = ["a", "b", "c"].map((letter) => letter.repeat(22));
      const next = (): string => tokens.shift() ?? "";
      const begun = store.beginSuccession(next);
      assert.deepEqual(begun, { held: null, next: "a".repeat(22) });
      const second = reopen();
      assert.deepEqual(second.beginSuccession(next), begun, "the answer may have been lost");
      second.finishSuccession(begun);
      second.finishSuccession(begun);
      const third = reopen();
      const step = third.beginSuccession(next);
      assert.equal(step.held, begun.next);
      third.finishSuccession(begun); // late, of the step before
      assert.deepEqual(third.beginSuccession(next), step);
    },
  );
}

function bundleCases(check: Check): void {
  check("R-10: a bundle survives and is never rolled back", (store, reopen) => {
    assert.equal(store.readBundle(), undefined);
    assert.equal(store.writeBundle(3, "three"), true);
    assert.equal(store.writeBundle(3, "another three"), false);
    assert.equal(store.writeBundle(2, "two"), false);
    assert.deepEqual(reopen().readBundle(), { version: 3, token: "three" });
  });
  check("R-10: a newer bundle replaces", (store, reopen) => {
    store.writeBundle(1, "one");
    assert.equal(store.writeBundle(2, "two"), true);
    assert.deepEqual(store.readBundle(), { version: 2, token: "two" });
    assert.deepEqual(reopen().readBundle(), { version: 2, token: "two" });
  });
}

function activationCases(check: Check): void {
  const identity = identityOf();

  check("an activation with its keys survives, and its secrets do not print", (store, reopen) => {
    const activation = activationOf(identity, { restoredFrom: parseDigest("d".repeat(64)), memory: true });
    store.writeActivation(activation);
    assert.deepEqual(plain(store.readActivation(identity.activation.id) ?? assert.fail()), plain(activation));
    const again = reopen().readActivation(identity.activation.id) ?? assert.fail();
    assert.deepEqual(plain(again), plain(activation));
    assert.ok(!inspect(again).includes("PRIVATE KEY"));
  });

  check("a change of phase survives", (store, reopen) => {
    store.writeActivation(activationOf(identity));
    store.writeActivation(activationOf(identity, { phase: "pausing" }));
    store.writeActivation(activationOf(identity, { phase: "snapshotted", manifest: "signed" }));
    const again = reopen();
    assert.equal(again.readActivation(identity.activation.id)?.manifest, "signed");
    assert.equal(again.allActivations().length, 1);
  });

  check("a snapshot has its manifest, and nothing else has one", (store) => {
    assert.throws(() => store.writeActivation(activationOf(identity, { phase: "kept" })), failed);
    assert.throws(() => store.writeActivation(activationOf(identity, { manifest: "signed" })), failed);
  });

  check("R-3: one process per generation, one activation per process", (store) => {
    store.writeActivation(activationOf(identity));
    const twin = identityOf({ activation: "z" });
    assert.throws(() => store.writeActivation(activationOf(twin)), failed);
    const next = identityOf({ generation: 2 });
    assert.throws(
      () => store.writeActivation(activationOf(next, { startedAs: identity.activation.id })),
      failed,
    );
    assert.equal(store.allActivations().length, 1);
  });

  check("R-3: a frozen process goes on as another activation in one step", (store, reopen) => {
    store.writeActivation(activationOf(identity, { phase: "kept", manifest: "signed" }));
    const next = activationOf(identityOf({ generation: 2 }), {
      startedAs: identity.activation.id,
      memory: true,
    });
    store.continueActivation(identity.activation.id, next);
    const again = reopen();
    assert.equal(again.readActivation(identity.activation.id), undefined);
    assert.deepEqual(again.allActivations().map(plain), [plain(next)]);
  });

  check("activations are found by their sandbox, as they are now", (store, reopen) => {
    const { sandboxId } = identity;
    store.writeActivation(activationOf(identity, { phase: "kept", manifest: "signed" }));
    store.writeActivation(activationOf(identityOf({ sandbox: "o", activation: "o" })));
    const next = activationOf(identityOf({ generation: 2 }), {
      startedAs: identity.activation.id,
      memory: true,
    });
    store.continueActivation(identity.activation.id, next);
    const running = activationOf(identityOf({ generation: 2 }), { ...next, phase: "pausing" });
    store.writeActivation(running);
    assert.deepEqual(store.activationsOf(sandboxId).map(plain), [plain(running)]);
    const again = reopen();
    assert.deepEqual(again.activationsOf(sandboxId).map(plain), [plain(running)]);
    assert.equal(again.activationCount, 2);
    again.removeActivation(next.identity.activation.id);
    assert.deepEqual(again.activationsOf(sandboxId), []);
    assert.equal(again.activationCount, 1);
  });

  check("removing is safe to repeat", (store, reopen) => {
    store.writeActivation(activationOf(identity));
    store.removeActivation(identity.activation.id);
    store.removeActivation(identity.activation.id);
    assert.deepEqual(reopen().allActivations(), []);
  });
}
