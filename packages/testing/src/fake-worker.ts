// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash, type KeyObject } from "node:crypto";
import {
  certificateDigest,
  KeyRing,
  manifestDigest,
  newSigningKey,
  publicKeyText,
  recordSetDigest,
  type SigningKey,
  signManifest,
  verifyCertificate,
  verifyLease,
  verifyRetirement,
} from "@space/capability";
import {
  type ActivateAnswer,
  type ActivateRequest,
  applyFeedEntry,
  type Clock,
  compareIdentity,
  type Digest,
  type ExecutionIdentity,
  type FeedItem,
  type LeaseAnswer,
  type LeaseRequest,
  leaseNonceBytes,
  type MemoryKept,
  manifestVersion,
  parseDigest,
  type ReceiverFeed,
  type RecordReceiver,
  type SandboxId,
  type SnapshotAnswer,
  type SnapshotLinks,
  type SnapshotManifest,
  SpaceError,
  type StoreSuccession,
  sameRoute,
  type TenantKey,
  type WorkerControl,
  type WorkerHello,
  type WorkerId,
  type WorkerInventory,
  type WorkerPresence,
} from "@space/model";

export type WorkerCommand =
  | "activate"
  | "install"
  | "snapshot"
  | "abortPause"
  | "retire"
  | "discard"
  | "takeLease"
  | "replaceKeys";

/** How one call goes wrong: before it had any effect, or after all of it. */
export interface Fault {
  readonly when: "before" | "after";
  readonly error: Error;
}

interface FakeProcess {
  readonly identity: ExecutionIdentity;
  readonly key: SigningKey;
  phase: "running" | "frozen" | "kept";
  manifest: Digest | undefined;
  /** What the sandbox's files hold. */
  files: string;
  /** Names the memory: equal as long as the same processes go on. */
  memory: string;
}

/** Files of every snapshot, by chunk: what all workers of a test share. */
export type FakeObjects = Map<Digest, string>;

const memoryOf = ({ filesystem }: SnapshotManifest): Digest => digestOf(`memory ${filesystem[0]?.digest}`);
const digestOf = (text: string): Digest => parseDigest(createHash("sha256").update(text).digest("hex"));

/**
 * A worker without a kernel: keeps the rules of the port (durable, repeatable, one command after the other for each
 * sandbox, tokens verified), so that what the control plane believes can be compared with what "runs".
 */
export class FakeWorker implements WorkerControl, RecordReceiver, ReceiverFeed {
  readonly workerId: WorkerId;
  readonly capacity: number;
  /** Every command, in the order in which it began. */
  readonly calls: { readonly command: WorkerCommand; readonly sandboxId: SandboxId | undefined }[] = [];
  memoryKept: MemoryKept = "frozen-on-worker";
  /** the pod that it is, on Kubernetes. */
  podUid: string | undefined;
  /** The highest position of its feed that it has applied. */
  feedPosition = 0;
  /** what it has asked for; a grant of another request is refused. */
  #asked: LeaseRequest | undefined;
  leases = 0;
  readonly #root: KeyObject;
  readonly #clock: Clock;
  readonly #objects: FakeObjects;
  #ring: KeyRing | undefined;
  #store: StoreSuccession = { held: null, next: `t${"0".repeat(21)}` };
  readonly #processes = new Map<SandboxId, FakeProcess>();
  readonly #kept = new Map<SandboxId, FakeProcess>();
  readonly #installed = new Map<
    SandboxId,
    { identity: ExecutionIdentity; certificate: string; retired: boolean }
  >();
  readonly #faults = new Map<WorkerCommand, Fault[]>();
  readonly #gates = new Map<string, Promise<void>>();
  readonly #turns = new Map<SandboxId, Promise<unknown>>();

  constructor(
    options: { readonly workerId: WorkerId; readonly capacity?: number; readonly root: KeyObject },
    ports: { readonly clock: Clock; readonly objects: FakeObjects },
  ) {
    this.workerId = options.workerId;
    this.capacity = options.capacity ?? 10;
    this.#root = options.root;
    this.#clock = ports.clock;
    this.#objects = ports.objects;
  }

  /** The next call of this command goes wrong so. */
  failNext(command: WorkerCommand, fault: Fault): void {
    this.#faults.set(command, [...(this.#faults.get(command) ?? []), fault]);
  }

  /** The answer of the next call does not come, though it has its effect, or has none. */
  loseAnswer(command: WorkerCommand, when: Fault["when"] = "after"): void {
    const error = new SpaceError("worker/unreachable", { workerId: this.workerId });
    this.failNext(command, { when, error });
  }

  /** Calls of this command wait, before or after they have their effect, until the returned function is called. */
  hold(command: WorkerCommand, when: Fault["when"] = "before"): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const gate = `${when} ${command}`;
    this.#gates.set(gate, promise);
    return () => {
      this.#gates.delete(gate);
      resolve();
    };
  }

  count(command: WorkerCommand): number {
    return this.calls.filter((call) => call.command === command).length;
  }

  /** Processes that exist here for a sandbox, frozen ones included. */
  processesOf(sandboxId: SandboxId): number {
    return (this.#processes.has(sandboxId) ? 1 : 0) + (this.#kept.has(sandboxId) ? 1 : 0);
  }

  get processes(): number {
    return this.#processes.size + this.#kept.size;
  }

  /** The identity that would be served now. */
  serving(sandboxId: SandboxId): ExecutionIdentity | undefined {
    const record = this.#installed.get(sandboxId);
    const process = this.#processes.get(sandboxId);
    if (record === undefined || record.retired || process?.phase !== "running") return undefined;
    return compareIdentity(record.identity, process.identity) === "identical" ? record.identity : undefined;
  }

  filesOf(sandboxId: SandboxId): string | undefined {
    return this.#processes.get(sandboxId)?.files;
  }

  memoryOf(sandboxId: SandboxId): string | undefined {
    return this.#processes.get(sandboxId)?.memory;
  }

  write(sandboxId: SandboxId, files: string): void {
    this.#process(sandboxId).files = files;
  }

  /** The processes are gone without a word, as after a crash of the host. */
  vanish(sandboxId: SandboxId): void {
    this.#processes.delete(sandboxId);
    this.#kept.delete(sandboxId);
  }

  async inventory(): Promise<WorkerInventory> {
    return this.holds();
  }

  /** What it serves and keeps frozen. */
  holds(): WorkerInventory {
    const installed = [...this.#installed.values()]
      .filter(({ retired, identity }) => !retired && this.#processes.has(identity.sandboxId))
      .map(({ identity }) => identity);
    const frozen = [...this.#kept].flatMap(([sandboxId, { manifest }]) =>
      manifest === undefined ? [] : [{ sandboxId, manifest }],
    );
    return { installed, frozen };
  }

  async tell({ position, entry }: FeedItem): Promise<void> {
    await applyFeedEntry(this, entry);
    this.feedPosition = Math.max(this.feedPosition, position ?? 0);
  }

  hello(): WorkerHello {
    return {
      workerId: this.workerId,
      substrate: "namespace",
      podUid: this.podUid,
      capacity: this.capacity,
      freeSlots: this.capacity - this.processes,
      endpoint: { host: "127.0.0.1", port: 4000 },
      inventory: this.holds(),
      bundleVersion: this.#ring?.version ?? 0,
      feedPosition: this.feedPosition,
      store: this.#store,
    };
  }

  /** The hello was taken: the store goes on from there. */
  connected(): void {
    const { next } = this.#store;
    const number = Number.parseInt(next.slice(1), 10) + 1;
    this.#store = { held: next, next: `t${String(number).padStart(21, "0")}` };
  }

  activate(request: ActivateRequest): Promise<ActivateAnswer> {
    const { identity, from } = request;
    const { sandboxId } = identity;
    return this.#command("activate", sandboxId, () => {
      const held = this.#processes.get(sandboxId);
      const { id, attempt } = identity.activation;
      if (held !== undefined && sameRoute(held.identity, identity) && held.identity.activation.id === id) {
        if (attempt > held.identity.activation.attempt) this.#processes.set(sandboxId, { ...held, identity });
        return { publicKey: publicKeyText(held.key.publicKey), memory: false };
      }
      if (attempt > 1) throw new SpaceError("record/absent", { sandboxId });
      const installed = this.#installed.get(sandboxId)?.identity;
      if (installed !== undefined && installed.generation >= identity.generation) {
        const { generation: offered } = identity;
        throw new SpaceError("record/stale", { sandboxId, installed: installed.generation, offered });
      }
      const key = newSigningKey();
      const kept = this.#kept.get(sandboxId);
      const goesOn = from?.memory === "frozen-on-worker" && kept?.manifest === from.digest ? kept : undefined;
      if (goesOn !== undefined) this.#kept.delete(sandboxId);
      const files = goesOn?.files ?? this.#restored(from);
      const saved = from?.memory === "in-snapshot" ? this.#objects.get(memoryOf(from.manifest)) : undefined;
      const memory = goesOn?.memory ?? saved ?? `${identity.activation.id}`;
      this.#processes.set(sandboxId, { identity, key, phase: "running", manifest: undefined, files, memory });
      return { publicKey: publicKeyText(key.publicKey), memory: goesOn !== undefined };
    });
  }

  async install(token: string): Promise<void> {
    const { identity, publicKey } = verifyCertificate(token, this.#requireRing());
    const { sandboxId } = identity;
    await this.#command("install", sandboxId, () => {
      const { key } = this.#process(sandboxId);
      if (publicKeyText(key.publicKey) !== publicKey) {
        throw new SpaceError("certificate/refused", { problem: "public key is another" });
      }
      this.#installed.set(sandboxId, { identity, certificate: token, retired: false });
    });
  }

  snapshot(
    identity: ExecutionIdentity,
    { previousManifest, chain, goesOn = false }: SnapshotLinks,
    { keyId }: Pick<TenantKey, "keyId">,
  ): Promise<SnapshotAnswer> {
    const { sandboxId } = identity;
    return this.#command("snapshot", sandboxId, () => {
      const process = this.#process(sandboxId);
      const record = this.#installed.get(sandboxId);
      if (record === undefined) throw new SpaceError("record/absent", { sandboxId });
      const { files } = process;
      process.phase = "frozen";
      const manifest = {
        version: manifestVersion,
        identity: record.identity,
        certificate: certificateDigest(record.certificate),
        previousManifest,
        chain,
        keyId,
        substrate: "namespace",
        memory: goesOn ? "none" : this.memoryKept,
        filesystem: [{ digest: digestOf(files), sizeBytes: files.length + 1 }],
        createdAtSeconds: Math.floor(this.#clock.wallMs() / 1000),
      } as const;
      const signed = signManifest(process.key, manifest);
      process.manifest = manifestDigest(signed);
      this.#objects.set(digestOf(files), files).set(memoryOf(manifest), process.memory);
      return { manifest, signed };
    });
  }

  abortPause({ sandboxId }: ExecutionIdentity): Promise<void> {
    return this.#command("abortPause", sandboxId, () => {
      const process = this.#processes.get(sandboxId);
      if (process === undefined) throw new SpaceError("substrate/failed", { step: "exited" });
      process.phase = "running";
    });
  }

  async retire(token: string, keepFrozen: Digest | null): Promise<void> {
    const { identity } = verifyRetirement(token, this.#requireRing());
    const { sandboxId } = identity;
    await this.#command("retire", sandboxId, () => {
      const record = this.#installed.get(sandboxId);
      if (record !== undefined && compareIdentity(identity, record.identity) === "identical")
        record.retired = true;
      const process = this.#processes.get(sandboxId);
      if (process !== undefined && compareIdentity(identity, process.identity) === "identical") {
        this.#processes.delete(sandboxId);
        const isKept = keepFrozen !== null && process.phase === "frozen" && process.manifest === keepFrozen;
        if (isKept) this.#kept.set(sandboxId, { ...process, phase: "kept" });
      }
      const kept = this.#kept.get(sandboxId);
      const endsKept = kept !== undefined && keepFrozen === null;
      if (endsKept && compareIdentity(identity, kept.identity) === "identical") this.#kept.delete(sandboxId);
    });
  }

  discard(sandboxId: SandboxId, manifest: Digest): Promise<void> {
    return this.#command("discard", sandboxId, () => {
      if (this.#kept.get(sandboxId)?.manifest === manifest) this.#kept.delete(sandboxId);
    });
  }

  /** Asks for a lease over this presence, as at each third of a term. */
  async renew(presence: Pick<WorkerPresence, "renew">): Promise<LeaseAnswer> {
    const nonce = Buffer.alloc(leaseNonceBytes, this.leases).toString("base64url");
    this.#asked = { nonce, records: recordSetDigest(this.holds()) };
    return presence.renew(this.#asked);
  }

  takeLease(grant: string): Promise<void> {
    return this.#command("takeLease", undefined, () => {
      const { nonce, workerId } = verifyLease(grant, this.#requireRing());
      if (workerId !== this.workerId || nonce !== this.#asked?.nonce) {
        throw new SpaceError("lease/refused", { problem: "of another request" });
      }
      this.leases += 1;
    });
  }

  replaceKeys(bundle: string): Promise<void> {
    return this.#command("replaceKeys", undefined, () => {
      this.#ring = KeyRing.fromBundle(bundle, this.#root);
    });
  }

  #restored(from: ActivateRequest["from"]): string {
    if (from === undefined) return "";
    return from.manifest.filesystem
      .map(({ digest }) => {
        const files = this.#objects.get(digest);
        if (files === undefined) throw new SpaceError("snapshot/missing", { digest });
        return files;
      })
      .join("");
  }

  #process(sandboxId: SandboxId): FakeProcess {
    const process = this.#processes.get(sandboxId);
    if (process === undefined) throw new SpaceError("substrate/failed", { step: "exited" });
    return process;
  }

  #requireRing(): KeyRing {
    if (this.#ring === undefined) throw new SpaceError("certificate/refused", { problem: "no keys" });
    return this.#ring;
  }

  /** One after the other for each sandbox, whatever became of the one before. */
  async #command<T>(command: WorkerCommand, sandboxId: SandboxId | undefined, effect: () => T): Promise<T> {
    this.calls.push({ command, sandboxId });
    if (sandboxId === undefined) return this.#go(command, effect);
    const before = this.#turns.get(sandboxId) ?? Promise.resolve();
    const turn = before.then(() => this.#go(command, effect));
    this.#turns.set(
      sandboxId,
      turn.catch(() => undefined),
    );
    return turn;
  }

  async #go<T>(command: WorkerCommand, effect: () => T): Promise<T> {
    await this.#gates.get(`before ${command}`);
    const fault = this.#faults.get(command)?.shift();
    if (fault?.when === "before") throw fault.error;
    const value = effect();
    await this.#gates.get(`after ${command}`);
    if (fault !== undefined) throw fault.error;
    return value;
  }
}
