// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import { type Duplex, duplexPair } from "node:stream";
import { manifestDigest, type SigningKey } from "@space/capability";
import {
  type ActivateRequest,
  type Digest,
  defaultLeaseSeconds,
  type ExecutionIdentity,
  freezeIdentity,
  newActivationId,
  newAdmissionId,
  newSandboxId,
  newWorkerId,
  parseDigest,
  parseGeneration,
  type SandboxId,
  type SnapshotAnswer,
  type SnapshotManifest,
  SpaceError,
  type WorkerId,
} from "@space/model";
import { MemoryByteStore, snapshotStore } from "@space/snapshot";
import { FrameLink, headerValue, type LinkStream, type OperationHead, parseAnswerHead } from "@space/wire";
import { createWorker, type Worker, type WorkerOptions, type WorkerPorts } from "@space/worker";
import { FakeBridge } from "./fake-bridge.ts";
import { FakeMachine, FakeSubstrate } from "./fake-machine.ts";
import { MemoryDisk, MemoryWorkerStore } from "./memory-worker-store.ts";
import { RecordingAudit } from "./recording-audit.ts";
import { SealedObjects, testTenantKey } from "./sealed-objects.ts";
import { SeededRandom } from "./seeded-random.ts";
import { TestAuthority } from "./test-authority.ts";
import { TestChains } from "./test-chains.ts";
import { settle, VirtualClock } from "./virtual-clock.ts";

/** So that a few words are several chunks. */
const tinyChunks = [{ untilChunk: Number.POSITIVE_INFINITY, bits: 1, minBytes: 8, maxBytes: 8 }];
/** Of a sandbox that has never run here. */
const nothingBefore = { previousManifest: null, chain: parseDigest("0".repeat(64)) };

/** What a gateway got for one operation. */
export interface GatewayAnswer {
  readonly status: number | undefined;
  readonly headers: readonly string[];
  readonly body: string;
  readonly reset: string | undefined;
  readonly proceed: string | undefined;
}

/** One operation that a gateway has open. */
export interface OpenOperation {
  readonly stream: LinkStream;
  readonly answer: Promise<GatewayAnswer>;
  body(): string;
  reset(): string | undefined;
}

/** One daemon: the ports that end with it. */
export interface Daemon {
  readonly worker: Worker;
  readonly store: MemoryWorkerStore;
  readonly substrate: FakeSubstrate;
}

/** How a daemon is to differ from the usual one. */
export interface BootOptions {
  readonly worker?: Partial<WorkerOptions>;
  readonly ports?: Partial<WorkerPorts>;
  readonly create?: typeof createWorker;
  /** false: its control plane is away, and it has no lease until {@link WorkerRig.lease}. */
  readonly leased?: false;
  readonly prepare?: (daemon: Omit<Daemon, "worker">) => void;
}

/** A worker's host, its control plane and its gateways, in one process and in virtual time. */
export class WorkerRig {
  readonly clock = new VirtualClock();
  readonly random: SeededRandom;
  readonly authority: TestAuthority;
  readonly workerId: WorkerId;
  disk = new MemoryDisk();
  readonly machine = new FakeMachine();
  readonly bridge = new FakeBridge(this.machine);
  readonly store: MemoryByteStore;
  /** What is sealed with the key of this control plane's one tenant. */
  readonly objects: SealedObjects;
  readonly audit = new RecordingAudit();
  /** The gateway's thumbprint. */
  readonly presenter = hash("sha256", "gateway certificate", "base64url");
  grantsLeases = true;
  leasedBy: TestAuthority;
  leaseSeconds = defaultLeaseSeconds;
  readonly chains: TestChains;
  #daemon: Daemon | undefined;
  #bridgeReachable = { yes: true };
  readonly #gatewaySockets: Duplex[] = [];

  constructor(seed = "worker", store = new MemoryByteStore()) {
    this.random = new SeededRandom(seed);
    this.authority = new TestAuthority(this.clock, this.random);
    this.leasedBy = this.authority;
    this.workerId = newWorkerId(this.random);
    this.store = store;
    this.objects = new SealedObjects(store);
    this.chains = new TestChains(this.authority, this.objects);
  }

  get daemon(): Daemon {
    if (this.#daemon === undefined) throw new TypeError("no daemon runs");
    return this.#daemon;
  }

  get worker(): Worker {
    return this.daemon.worker;
  }

  /** Starts a daemon on this host's disk, with keys unless the disk has some. */
  async boot(options: BootOptions = {}): Promise<Worker> {
    const store = new MemoryWorkerStore(this.disk);
    const substrate = new FakeSubstrate(this.machine);
    const reachable = { yes: true };
    this.#bridgeReachable = reachable;
    options.prepare?.({ store, substrate });
    try {
      const worker = await (options.create ?? createWorker)(
        {
          workerId: this.workerId,
          capacity: 8,
          rootPublicKey: this.authority.rootPublicKey,
          ...options.worker,
        },
        {
          records: store,
          substrate,
          snapshots: snapshotStore(
            { store: this.store, random: new SeededRandom("sealing") },
            { classes: tinyChunks },
          ),
          host: {
            connect: async () => {
              if (reachable.yes) return this.bridge.accept();
              throw new SpaceError("endpoint/unverifiable", { problem: "the daemon is gone" });
            },
          },
          clock: this.clock,
          random: this.random,
          audit: this.audit,
          ...options.ports,
        },
      );
      if (this.disk.bundle === undefined) await worker.control.replaceKeys(this.authority.bundle());
      if (options.leased !== false) this.lease(worker);
      await settle();
      this.#daemon = { worker, store, substrate };
      return worker;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  /** from now on every request for a lease is granted, unless {@link grantsLeases} says otherwise. */
  lease(worker: Worker = this.worker): void {
    worker.leaseFrom({
      renew: async (request) => {
        if (!this.grantsLeases) return { kind: "withheld", retryMs: 500 };
        await worker.control.takeLease(this.leasedBy.lease(this.workerId, request, this.leaseSeconds));
        return { kind: "granted" };
      },
    });
  }

  /** Ends the daemon as `kill -9` does: nothing of it runs on, its processes do. */
  kill(): void {
    this.#bridgeReachable.yes = false;
    this.daemon.store.close();
    this.machine.listeners = [];
    this.bridge.dropLinks();
    for (const socket of this.#gatewaySockets.splice(0)) socket.destroy();
    this.#daemon = undefined;
  }

  async reboot(options: BootOptions = {}): Promise<Worker> {
    this.kill();
    return this.boot(options);
  }

  identity(parts: { sandboxId?: SandboxId; generation?: number; attempt?: number } = {}): ExecutionIdentity {
    return freezeIdentity({
      sandboxId: parts.sandboxId ?? newSandboxId(this.random),
      generation: parseGeneration(String(parts.generation ?? 1)),
      placement: { workerId: this.workerId, substrate: "namespace" },
      activation: { id: newActivationId(this.random), attempt: parts.attempt ?? 1 },
    });
  }

  request(identity: ExecutionIdentity, more: Partial<ActivateRequest> = {}): ActivateRequest {
    return {
      identity,
      tenantId: testTenantKey.tenantId,
      template: "base",
      limits: { memoryBytes: 2 ** 29, cpus: 1, processes: 256, diskBytes: 2 ** 30 },
      variables: { A: "1" },
      ...more,
    };
  }

  /** Activates and installs, as the control plane does. Returns the certificate. */
  async run(identity: ExecutionIdentity, more: Partial<ActivateRequest> = {}): Promise<string> {
    const { publicKey } = await this.worker.control.activate(this.request(identity, more));
    const previous = this.chains.head(identity.sandboxId);
    const certificate = this.authority.certificate({
      identity,
      publicKey,
      restoredFrom: more.from?.digest ?? null,
      ...(previous === undefined ? {} : { previous }),
    });
    await this.worker.control.install(certificate);
    this.chains.certified(identity.sandboxId, certificate);
    return certificate;
  }

  /** As the control plane asks for it, following what came before. */
  async snapshot(identity: ExecutionIdentity): Promise<SnapshotAnswer> {
    const { sandboxId } = identity;
    const hasRun = this.chains.head(sandboxId) !== undefined;
    const follows = hasRun ? await this.chains.seal(sandboxId) : nothingBefore;
    return this.worker.control.snapshot(identity, follows, testTenantKey);
  }

  /** Pauses, as the control plane does, keeping the memory here or not. Returns where to resume from. */
  async pause(
    identity: ExecutionIdentity,
    keepMemory: boolean,
  ): Promise<NonNullable<ActivateRequest["from"]>> {
    const from = this.sourceOf(await this.snapshot(identity));
    await this.worker.control.retire(this.authority.retirement(identity), keepMemory ? from.digest : null);
    return { ...from, memory: keepMemory ? "frozen-on-worker" : "none" };
  }

  /** Where to resume from, as the control plane says it. */
  sourceOf({ manifest, signed }: SnapshotAnswer): NonNullable<ActivateRequest["from"]> {
    const digest = manifestDigest(signed);
    this.chains.committed(manifest.identity.sandboxId, signed);
    const head = this.headOf(manifest, digest);
    return { manifest, digest, memory: "none", key: testTenantKey, head, since: null };
  }

  /** the signed head of a chain that ends with this snapshot, and with its execution. */
  headOf(
    { identity, certificate }: Pick<SnapshotManifest, "identity" | "certificate">,
    manifest: Digest | null,
    key?: SigningKey,
  ): string {
    return this.authority.head({ sandboxId: identity.sandboxId, certificate, manifest }, key);
  }

  /** A gateway's connection. */
  gateway(presenter: string = this.presenter): FrameLink {
    const [near, far] = duplexPair();
    this.#gatewaySockets.push(far);
    this.worker.acceptGateway(far, presenter);
    return new FrameLink(near, { dialled: true });
  }

  head(identity: ExecutionIdentity, more: Partial<OperationHead> = {}): OperationHead {
    return {
      admission: newAdmissionId(this.random),
      sandbox: identity.sandboxId,
      capability: this.authority.capability({ identity, presenter: this.presenter }),
      target: { purpose: "control" },
      method: "GET",
      path: "/files?path=/a",
      headers: ["accept", "*/*"],
      ...more,
    };
  }

  /** One whole operation. Without a body the head ends the request. */
  async send(link: FrameLink, head: OperationHead, body?: string): Promise<GatewayAnswer> {
    const operation = openOperation(link, head, body === undefined);
    if (body !== undefined) {
      operation.stream.send(Buffer.from(body));
      operation.stream.end();
    }
    return operation.answer;
  }

  /** One operation for this identity over a new connection. */
  async ask(identity: ExecutionIdentity, more: Partial<OperationHead> = {}): Promise<GatewayAnswer> {
    const link = this.gateway();
    const answer = await this.send(link, this.head(identity, more));
    link.destroy(undefined);
    return answer;
  }
}

/** Opens an operation; the answer comes when the worker's side has ended or was reset. */
export function openOperation(link: FrameLink, head: unknown, ended: boolean): OpenOperation {
  let status: number | undefined;
  let headers: readonly string[] = [];
  let body = "";
  let reset: string | undefined;
  let proceed: string | undefined;
  const { promise: answer, resolve } = Promise.withResolvers<GatewayAnswer>();
  const finish = (): void => resolve({ status, headers, body, reset, proceed });
  const stream = link.open(
    JSON.stringify(head),
    {
      onHead: (bytes) => {
        ({ status, headers } = parseAnswerHead(JSON.parse(bytes.toString())));
      },
      onProceed: (admission) => {
        proceed = admission;
      },
      onData: (chunk) => {
        body += chunk.toString();
        stream.consumed(chunk.length);
      },
      onEnd: finish,
      onReset: (reason) => {
        reset = reason;
        finish();
      },
    },
    ended,
  );
  return { stream, answer, body: () => body, reset: () => reset };
}

/** The verdict of an answer, as a gateway reads it. */
export function verdictOf(answer: GatewayAnswer): string {
  return (
    headerValue(answer.headers, "space-verdict") ??
    (headerValue(answer.headers, "space-admitted") === undefined ? "none" : "match")
  );
}
