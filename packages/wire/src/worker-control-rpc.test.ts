// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { afterEach, test } from "node:test";
import {
  type ActivateRequest,
  type Clock,
  type ExecutionIdentity,
  freezeIdentity,
  identityToJson,
  isSpaceError,
  parseActivationId,
  parseDigest,
  parseGeneration,
  parseSandboxId,
  parseTenantId,
  parseTenantKeyId,
  parseWorkerId,
  Secret,
  type SnapshotManifest,
  SpaceError,
  type TenantKey,
  type WorkerControl,
  type WorkerHello,
  type WorkerReport,
} from "@space/model";
import { decodeJson } from "./json.ts";
import { FrameLink } from "./link.ts";
import { callRpc, serveRpc } from "./rpc.ts";
import { workerControlClient, workerControlHandlers } from "./worker-control-rpc.ts";
import { workerPresenceClient, workerPresenceHandlers } from "./worker-presence-rpc.ts";

const workerId = parseWorkerId(`wrk_${"w".repeat(16)}`);
const identity: ExecutionIdentity = freezeIdentity({
  sandboxId: parseSandboxId(`i${"a".repeat(20)}`),
  generation: parseGeneration("9007199254740993"),
  placement: { workerId, substrate: "namespace" },
  activation: { id: parseActivationId(`act_${"b".repeat(26)}`), attempt: 2 },
});
const digest = parseDigest("d".repeat(64));
const key: TenantKey = {
  tenantId: parseTenantId(`ten_${"t".repeat(16)}`),
  keyId: parseTenantKeyId(`tky_${"k".repeat(26)}`),
  secret: new Secret(new Uint8Array(32).fill(5)),
};
const manifest: SnapshotManifest = {
  version: 3,
  identity,
  certificate: digest,
  previousManifest: null,
  chain: digest,
  keyId: key.keyId,
  substrate: "namespace",
  memory: "frozen-on-worker",
  filesystem: [{ digest, sizeBytes: 12 }],
  createdAtSeconds: 1_700_000_000,
};
const follows = { previousManifest: null, chain: digest, goesOn: true, handsOver: true };
const inventory = { installed: [identity], frozen: [{ sandboxId: identity.sandboxId, manifest: digest }] };
const request: ActivateRequest = {
  identity,
  tenantId: parseTenantId(`ten_${"t".repeat(16)}`),
  template: "base",
  limits: { memoryBytes: 2 ** 29, cpus: 0.5, processes: 512, diskBytes: 2 ** 33 },
  variables: { A: "1" },
  from: {
    peer: { host: "127.0.0.1", port: 7000, grant: "a.b.c" },
    manifest,
    digest,
    memory: "none",
    key,
    head: "head",
    since: digest,
  },
};

/** A clock whose delays end when the test says so. */
class HandClock implements Clock {
  readonly #waiting = new Set<() => void>();
  wallMs(): number {
    return 0;
  }
  monotonicMs(): number {
    return 0;
  }
  after(_delayMs: number, callback: () => void): () => void {
    this.#waiting.add(callback);
    return () => this.#waiting.delete(callback);
  }
  fire(): void {
    for (const callback of this.#waiting) callback();
  }
}

const refuse = (): Promise<never> => Promise.reject(new Error("not expected"));
const unserved: WorkerControl = {
  activate: refuse,
  snapshot: refuse,
  abortPause: refuse,
  inventory: refuse,
};

const links: FrameLink[] = [];
afterEach(() => {
  for (const link of links.splice(0)) link.destroy(undefined);
});

function linked(handlers: Parameters<typeof serveRpc>[2]): FrameLink {
  const [near, far] = duplexPair();
  links.push(
    new FrameLink(far, {
      dialled: false,
      onOpen: (stream, head) =>
        serveRpc(stream, decodeJson(head.toString()) as { rpc: string; params: unknown }, handlers),
    }),
  );
  const link = new FrameLink(near, { dialled: true });
  links.push(link);
  return link;
}

function client(served: Partial<WorkerControl>, clock: Clock = new HandClock()): WorkerControl {
  return workerControlClient(linked(workerControlHandlers({ ...unserved, ...served })), clock, workerId);
}

test("each command arrives with its parameters, and its answer comes back", async () => {
  const seen: unknown[] = [];
  const control = client({
    activate: async (asked) => {
      seen.push(asked);
      return { publicKey: "key", memory: true };
    },
    snapshot: async (...asked) => {
      seen.push(asked);
      return { manifest, signed: "a.b.c" };
    },
    abortPause: async (...asked) => {
      seen.push(asked);
    },
    inventory: async () => inventory,
  });
  assert.deepEqual(await control.activate(request), { publicKey: "key", memory: true });
  assert.deepEqual(await control.snapshot(identity, follows, key), { manifest, signed: "a.b.c" });
  await control.abortPause(identity);
  assert.deepEqual(await control.inventory(), inventory);
  assert.deepEqual(seen, [request, [identity, follows, key], [identity]]);
});

test("the worker's own error passes through with its details", async () => {
  const control = client({
    abortPause: () => Promise.reject(new SpaceError("substrate/failed", { step: "exited" })),
  });
  await assert.rejects(
    control.abortPause(identity),
    (error) => isSpaceError(error, "substrate/failed") && error.details.step === "exited",
  );
});

test("a link that ends, or an answer that stays away, is an unreachable worker", async () => {
  const clock = new HandClock();
  const silent = client({ abortPause: () => new Promise(() => undefined) }, clock);
  const waiting = silent.abortPause(identity);
  clock.fire();
  await assert.rejects(waiting, (error) => isSpaceError(error, "worker/unreachable"));
  const cut = silent.abortPause(identity);
  for (const link of links) link.destroy(undefined);
  await assert.rejects(cut, (error) => isSpaceError(error, "worker/unreachable"));
});

test("parameters with an unknown, missing or ill-formed member are refused, and the link lives on", async () => {
  const link = linked(workerControlHandlers(unserved));
  const call = (method: string, params: unknown): Promise<unknown> =>
    callRpc(link, new HandClock(), { method, params });
  const invalid = (error: unknown): boolean => isSpaceError(error, "input/invalid");
  await assert.rejects(call("worker/abort-pause", { identity: 7 }), invalid);
  await assert.rejects(call("worker/abort-pause", null), invalid);
  await assert.rejects(call("worker/snapshot", { identity: identityToJson(identity) }), invalid);
  await assert.rejects(call("worker/activate", { ...request, identity: {} }), invalid);
  await assert.rejects(call("worker/explode", {}), (error) => isSpaceError(error, "link/protocol"));
});

test("a worker's hello, reports and requests for a lease arrive whole, and the answers come back", async () => {
  const hello: WorkerHello = {
    workerId,
    substrate: "namespace",
    capacity: 10,
    freeSlots: 8,
    endpoint: { host: "127.0.0.1", port: 4000 },
    inventory: { installed: [identity], frozen: [{ sandboxId: identity.sandboxId, manifest: digest }] },
    bundleVersion: 3,
    feedPosition: 41,
    store: { held: null, next: "n".repeat(22) },
  };
  const report: WorkerReport = { identity, what: "exited", reason: "killed" };
  const seen: unknown[] = [];
  const presence = workerPresenceClient(
    linked(
      workerPresenceHandlers({
        hello: async (said) => {
          seen.push(said);
          return { bundle: "newer" };
        },
        report: async (said) => {
          seen.push(said);
        },
        renew: async (asked) => {
          seen.push(asked);
          return { kind: "withheld", retryMs: 500 };
        },
      }),
    ),
    new HandClock(),
  );
  assert.deepEqual(await presence.hello(hello), { bundle: "newer" });
  const inPod: WorkerHello = { ...hello, substrate: "kubernetes", podUid: "7c1f-1" };
  assert.deepEqual(await presence.hello(inPod), { bundle: "newer" });
  await assert.rejects(presence.hello({ ...hello, podUid: "a b" }), (error) =>
    isSpaceError(error, "input/invalid"),
  );
  await presence.report(report);
  const asking = { nonce: "n", records: digest };
  assert.deepEqual(await presence.renew(asking), { kind: "withheld", retryMs: 500 });
  assert.deepEqual(seen, [hello, inPod, report, asking]);
  await assert.rejects(
    presence.hello({ ...hello, freeSlots: 11 }),
    (error) => isSpaceError(error, "input/invalid") && error.details.field === "freeSlots",
  );
});
