// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, mkdtempSync, rmSync } from "node:fs";
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
  type ActivateRequest,
  type ActivationId,
  type ApiCaller,
  type ConnectedSandbox,
  type CreateSandbox,
  type ExecutionIdentity,
  newSuccessionToken,
  type ReceiverFeed,
  type SandboxId,
  type SandboxRecord,
  type SandboxStore,
  Secret,
  type WorkerControl,
} from "@space/model";
import {
  ChunkCollector,
  MemoryByteStore,
  MemoryKeyWrapping,
  snapshotStore,
  TenantKeys,
} from "@space/snapshot";
import { type ControlStore, openControlStore } from "@space/store-sqlite";
import type { FakeProcess } from "./fake-machine.ts";
import { MemoryKeyVault, MemoryRootKey } from "./memory-keys.ts";
import { MortalProcess } from "./mortal-process.ts";
import { RecordingAudit } from "./recording-audit.ts";
import { SeededRandom } from "./seeded-random.ts";
import { settle, VirtualClock } from "./virtual-clock.ts";
import { WorkerRig } from "./worker-rig.ts";

/** A process dies here, no host: what was written need not reach a disk. */
const inMemory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** One control-plane process, and what only it holds. */
interface Running {
  readonly life: MortalProcess;
  readonly control: ControlPlane;
  readonly attached: AttachedWorker[];
}

/** So that everything that a crash left is dealt with, and the collector has passed several times, in half a minute. */
const limits: Partial<ControlLimits> = {
  claimMs: 8000,
  confirmMs: 1000,
  reaperTickMs: 4000,
  orderTickMs: 2000,
  leaseTickMs: 8000,
  recoveryTickMs: 3000,
  collectTickMs: 5000,
  purgeTickMs: 5000,
  keyTickMs: 60_000,
  keyMaxAgeMs: 240 * 3_600_000,
  tombstoneMs: 600_000,
};
/** After it every claim is over, every order has been told again, and what is unneeded has been collected. */
const settledMs = 28_000;

/**
 * A control plane that can be killed at any call of its ports, over a real store and two real workers whose machines are
 * in memory: everything that outlives it is here, and is looked at as it is.
 */
export class LossRig {
  readonly clock = new VirtualClock();
  readonly random = new SeededRandom("loss rig");
  readonly audit = new RecordingAudit();
  readonly root: SigningKey = newSigningKey();
  readonly #rootKey = new MemoryRootKey(this.root);
  readonly #vault = new MemoryKeyVault();
  readonly wrapping = new MemoryKeyWrapping();
  /** Where snapshots are, and the tenants' wrapped keys. */
  readonly objects = new MemoryByteStore(() => this.clock.wallMs());
  readonly a = new WorkerRig("worker a", this.objects);
  readonly b = new WorkerRig("worker b", this.objects);
  /** Every process that was started, by what it was started for: a name for each generation. */
  readonly starts = new Map<string, Set<ActivationId>>();
  readonly #asked = new Map<ActivationId, ExecutionIdentity>();
  readonly #directory = mkdtempSync(join(inMemory, "loss-rig-"));
  /** What is written lies here, whoever wrote it: a process that died has no part in it any more. */
  readonly #store: ControlStore = openControlStore(this.#directory, this.clock);
  #running: Running | undefined;
  #caller: ApiCaller | undefined;

  static async open(context: { after(fn: () => Promise<void>): void }): Promise<LossRig> {
    const rig = new LossRig();
    context.after(() => rig.#dispose());
    await rig.#begin();
    return rig;
  }

  get sides(): readonly WorkerRig[] {
    return [this.a, this.b];
  }

  get #process(): Running {
    if (this.#running === undefined) throw new TypeError("no control plane runs");
    return this.#running;
  }

  get life(): MortalProcess {
    return this.#process.life;
  }

  get control(): ControlPlane {
    return this.#process.control;
  }

  get service(): ControlPlane["service"] {
    return this.control.service;
  }

  /** The store itself, of no process. */
  get sandboxes(): SandboxStore {
    return this.#store.sandboxes;
  }

  get caller(): ApiCaller {
    if (this.#caller === undefined) throw new TypeError("no caller yet");
    return this.#caller;
  }

  /** Another process on the same store, which is this replica after a restart, or another one. */
  async start(replica: string, workers: "join" | "none" = "join"): Promise<void> {
    const life = new MortalProcess();
    const clock = life.clock(this.clock);
    const audit = life.audit(this.audit);
    const store = this.#store;
    const sealing = { store: life.port("objects", this.objects), random: new SeededRandom("sealing") };
    const control = await openControlPlane(
      { issuer: "test", tokenSecret: new Secret<Uint8Array>(new Uint8Array(32).fill(7)), limits, replica },
      {
        sandboxes: life.port("sandboxes", store.sandboxes),
        snapshots: snapshotStore(sealing),
        tenantKeys: new TenantKeys({ ...sealing, wrapping: life.port("wrapping", this.wrapping) }),
        collector: (references) => new ChunkCollector({ ...sealing, references, clock }, { graceMs: 0 }),
        installation: life.port("installation", store.installation),
        signingKeys: life.port("signing keys", store.signingKeys),
        enrolments: life.port("enrolments", store.enrolments),
        privateKeys: life.port("vault", this.#vault),
        rootKey: life.port("root key", this.#rootKey),
        receiverStore: life.port("receivers", store.receiverStore),
        clock,
        random: this.random,
        audit,
      },
    );
    this.#running = { life, control, attached: [] };
    if (workers === "join") await this.join();
  }

  /** The process ends here, if it has not died before: its links break. */
  async end(): Promise<void> {
    const { life, attached } = this.#process;
    life.die("from outside");
    await settle();
    for (const { detach } of attached) detach();
    await settle();
    this.#running = undefined;
  }

  /** Both workers dial the control plane that runs now. */
  async join(): Promise<void> {
    for (const side of this.sides) await this.#attach(side);
  }

  /** Time enough for every recovery there is, and for the collector. */
  async settled(): Promise<void> {
    await this.clock.advance(settledMs);
  }

  create(more: Partial<CreateSandbox> = {}): Promise<ConnectedSandbox> {
    return this.service.create(this.caller, {
      template: "base",
      timeoutMs: 3_600_000,
      metadata: {},
      variables: {},
      onTimeout: "kill",
      keepMemory: true,
      autoResume: false,
      autoRecover: false,
      workerId: this.a.workerId,
      ...more,
    });
  }

  async record(sandboxId: SandboxId): Promise<SandboxRecord> {
    const record = await this.sandboxes.read(sandboxId);
    if (record === undefined) throw new TypeError("it is not stored");
    return record;
  }

  /** The process that serves this sandbox now. */
  processOf({ execution }: SandboxRecord): FakeProcess | undefined {
    const { activation, placement } = execution.identity;
    const side = this.sides.find(({ workerId }) => workerId === placement.workerId);
    // By what its agent knows: one that went on from its frozen memory was started under another name.
    return [...(side?.machine.processes.values() ?? [])].find((one) => one.activationId === activation.id);
  }

  /** What the sandbox's files and memory hold from now on. */
  write(record: SandboxRecord, said: string): void {
    const process = this.processOf(record);
    if (process === undefined) throw new TypeError("nothing runs");
    process.files = said;
    process.memory = said;
  }

  async #begin(): Promise<void> {
    await this.start("first", "none");
    this.#caller = await this.#newCaller();
    for (const side of this.sides) await this.#boot(side);
    await this.join();
  }

  async #newCaller(): Promise<ApiCaller> {
    const tenantId = await this.control.administration.createTenant("first");
    const { text } = await this.control.administration.createApiKey(tenantId);
    return this.service.authenticate(text);
  }

  async #boot(side: WorkerRig): Promise<void> {
    const bundle = (await this.#store.signingKeys.bundles()).at(-1);
    if (bundle === undefined) throw new TypeError("there is a bundle");
    side.disk.bundle = { version: 1, token: bundle.token };
    await side.boot({
      worker: { rootPublicKey: this.root.publicKey },
      ports: { clock: this.clock },
      leased: false,
      prepare: ({ substrate }) => {
        substrate.beforeStep = (step, id) => {
          if (step === "start" && id !== undefined) this.#noteStart(id);
        };
      },
    });
  }

  #noteStart(id: ActivationId): void {
    const identity = this.#asked.get(id);
    if (identity === undefined) throw new TypeError("nobody asked for this start");
    const name = `${identity.sandboxId} generation ${identity.generation}`;
    this.starts.set(name, (this.starts.get(name) ?? new Set()).add(id));
  }

  async #attach(side: WorkerRig): Promise<void> {
    const { life, control, attached } = this.#process;
    const { worker, store } = side.daemon;
    const link = control.attach(side.workerId, life.port(side === this.a ? "a" : "b", this.#commands(side)));
    attached.push(link);
    const said = {
      workerId: side.workerId,
      substrate: "namespace" as const,
      podUid: undefined,
      capacity: 8,
      freeSlots: 8,
      endpoint: { host: "127.0.0.1", port: 7000 },
      inventory: worker.inventory(),
      bundleVersion: worker.stats().bundleVersion,
      feedPosition: side.disk.feedPosition,
      store: store.beginSuccession(() => newSuccessionToken(this.random)),
    };
    const { bundle } = await link.presence.hello(said);
    store.finishSuccession(said.store);
    if (bundle !== null) await worker.control.replaceKeys(bundle);
    await settle();
    worker.leaseFrom(link.presence);
    await settle();
  }

  #commands({ worker }: WorkerRig): WorkerControl & ReceiverFeed {
    return {
      activate: (request: ActivateRequest) => {
        this.#asked.set(request.identity.activation.id, request.identity);
        return worker.control.activate(request);
      },
      snapshot: (...args) => worker.control.snapshot(...args),
      abortPause: (identity) => worker.control.abortPause(identity),
      inventory: () => worker.control.inventory(),
      tell: (item) => worker.feed.tell(item),
    };
  }

  async #dispose(): Promise<void> {
    if (this.#running !== undefined) await this.end();
    for (const side of this.sides) side.kill();
    this.#store.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
