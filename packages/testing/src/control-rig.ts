// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSigningKey, type SigningKey } from "@space/capability";
import {
  type AttachedWorker,
  type ControlLimits,
  type ControlPlane,
  openControlPlane,
} from "@space/control-plane";
import {
  type ApiCaller,
  type BootClock,
  type ConnectedSandbox,
  type ConnectSandbox,
  type CreateSandbox,
  newWorkerId,
  type SandboxId,
  type SandboxRecord,
  type SandboxStore,
  Secret,
  type SigningKeyStore,
} from "@space/model";
import {
  ChunkCollector,
  MemoryByteStore,
  MemoryKeyWrapping,
  snapshotStore,
  TenantKeys,
} from "@space/snapshot";
import { type ControlStore, openControlStore } from "@space/store-sqlite";
import { type FakeObjects, FakeWorker } from "./fake-worker.ts";
import { MemoryKeyVault, MemoryRootKey } from "./memory-keys.ts";
import { RecordingAudit } from "./recording-audit.ts";
import { SealedObjects } from "./sealed-objects.ts";
import { SeededRandom } from "./seeded-random.ts";
import { settle, VirtualClock } from "./virtual-clock.ts";

/** A control plane on a real store, with fake workers, in virtual time. */
export class ControlRig {
  readonly clock = new VirtualClock();
  readonly random = new SeededRandom("control rig");
  readonly audit = new RecordingAudit();
  readonly root: SigningKey = newSigningKey();
  readonly rootKey: MemoryRootKey = new MemoryRootKey(this.root);
  readonly privateKeys: MemoryKeyVault = new MemoryKeyVault();
  readonly objects: FakeObjects = new Map();
  /** Where snapshots are, and the tenants' wrapped keys. */
  readonly store = new MemoryByteStore(() => this.clock.wallMs());
  readonly wrapping = new MemoryKeyWrapping();
  readonly #sealing = { store: this.store, random: new SeededRandom("sealing") };
  readonly tenantKeys = new TenantKeys({ ...this.#sealing, wrapping: this.wrapping });
  readonly #directory = mkdtempSync(join(tmpdir(), "control-rig-"));
  readonly #limits: Partial<ControlLimits>;
  readonly #attached = new Map<FakeWorker, AttachedWorker>();
  #store: ControlStore | undefined;
  #control: ControlPlane | undefined;
  #caller: ApiCaller | undefined;

  readonly #directMoves: boolean;

  private constructor(limits: Partial<ControlLimits>, directMoves: boolean) {
    this.#limits = limits;
    this.#directMoves = directMoves;
  }

  /** With this many workers, all connected, and one tenant. */
  static async open(
    context: { after(fn: () => Promise<void>): void },
    {
      workers = 2,
      limits = {},
      directMoves = false,
    }: { workers?: number; limits?: Partial<ControlLimits>; directMoves?: boolean } = {},
  ): Promise<{ rig: ControlRig; workers: readonly [FakeWorker, FakeWorker] }> {
    const rig = new ControlRig(limits, directMoves);
    context.after(() => rig.#dispose());
    await rig.start();
    const made = Array.from({ length: 2 }, () => rig.newWorker());
    for (const worker of made.slice(0, workers)) await rig.attach(worker);
    const [a, b] = made;
    assert.ok(a !== undefined && b !== undefined);
    return { rig, workers: [a, b] };
  }

  get control(): ControlPlane {
    assert.ok(this.#control !== undefined);
    return this.#control;
  }

  get service(): ControlPlane["service"] {
    return this.control.service;
  }

  get sandboxes(): SandboxStore {
    assert.ok(this.#store !== undefined);
    return this.#store.sandboxes;
  }

  get caller(): ApiCaller {
    assert.ok(this.#caller !== undefined);
    return this.#caller;
  }

  /** what workers verify with. */
  async bundle(): Promise<string> {
    const newest = (await this.bundles()).at(-1);
    assert.ok(newest !== undefined);
    return newest;
  }

  /** Every bundle there was, the oldest first. */
  async bundles(): Promise<readonly string[]> {
    assert.ok(this.#store !== undefined);
    return (await this.#store.signingKeys.bundles()).map(({ token }) => token);
  }

  async start(): Promise<void> {
    this.#store = openControlStore(this.#directory, this.clock);
    this.#control = await this.openReplica("control-plane");
    this.#caller ??= await this.newCaller("first");
  }

  /** another control plane on the same store, of whose signing keys it sees what `seen` shows, with a clock of its own. */
  async openReplica(
    replica: string,
    seen: (keys: SigningKeyStore) => SigningKeyStore = (keys) => keys,
    clock: BootClock = this.clock,
  ): Promise<ControlPlane> {
    const store = this.#store;
    assert.ok(store !== undefined);
    return openControlPlane(
      {
        issuer: "test",
        tokenSecret: new Secret<Uint8Array>(new Uint8Array(32).fill(7)),
        limits: this.#limits,
        replica,
        directMoves: this.#directMoves,
      },
      {
        sandboxes: store.sandboxes,
        snapshots: snapshotStore(this.#sealing),
        tenantKeys: this.tenantKeys,
        collector: (references) =>
          new ChunkCollector({ ...this.#sealing, references, clock }, { graceMs: 0 }),
        installation: store.installation,
        signingKeys: seen(store.signingKeys),
        enrolments: store.enrolments,
        privateKeys: this.privateKeys,
        rootKey: this.rootKey,
        receiverStore: store.receiverStore,
        clock,
        random: this.random,
        audit: this.audit,
      },
    );
  }

  /** what is sealed with the key that seals the first caller's snapshots now. */
  async sealed(): Promise<SealedObjects> {
    return new SealedObjects(this.store, await this.tenantKeys.current(this.caller.tenantId));
  }

  /** The process is gone at this instant: nothing that it was about to do is written any more. */
  crash(): void {
    this.#store?.close();
    for (const attached of this.#attached.values()) attached.detach();
    this.#attached.clear();
  }

  newWorker(capacity = 10): FakeWorker {
    return new FakeWorker(
      { workerId: newWorkerId(this.random), capacity, root: this.root.publicKey },
      { clock: this.clock, objects: this.objects },
    );
  }

  /** The worker dials and says hello. */
  async attach(worker: FakeWorker, control: ControlPlane = this.control): Promise<AttachedWorker> {
    const attached = control.attach(worker.workerId, worker);
    this.#attached.set(worker, attached);
    await attached.presence.hello(worker.hello());
    worker.connected();
    await settle();
    void worker.renew(attached.presence); // answered when the worker has taken what it is told first
    await settle();
    return attached;
  }

  detach(worker: FakeWorker): void {
    this.#attached.get(worker)?.detach();
    this.#attached.delete(worker);
  }

  async newCaller(name: string): Promise<ApiCaller> {
    const tenantId = await this.control.administration.createTenant(name);
    const { text } = await this.control.administration.createApiKey(tenantId);
    return this.service.authenticate(text);
  }

  create(more: Partial<CreateSandbox> = {}): Promise<ConnectedSandbox> {
    return this.service.create(this.caller, {
      template: "base",
      timeoutMs: 300_000,
      metadata: {},
      variables: {},
      onTimeout: "kill",
      keepMemory: true,
      autoResume: false,
      autoRecover: false,
      ...more,
    });
  }

  connect(sandboxId: SandboxId, more: Partial<ConnectSandbox> = {}): Promise<ConnectedSandbox> {
    return this.service.connect(this.caller, sandboxId, { timeoutMs: 300_000, memory: true, ...more });
  }

  async record(sandboxId: SandboxId): Promise<SandboxRecord> {
    const record = await this.sandboxes.read(sandboxId);
    assert.ok(record !== undefined);
    return record;
  }

  async #dispose(): Promise<void> {
    this.crash();
    await settle();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
