// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiKeyRecord,
  type BeginOutcome,
  type ChainLinks,
  type ChainToken,
  type ChangeOutcome,
  type ChangeRequest,
  type Digest,
  type ListSandboxes,
  type NewSandbox,
  type PendingQuery,
  type PendingSideEffect,
  type ReceiverRecord,
  type SandboxId,
  type SandboxRecord,
  type SealedSegment,
  type SideEffect,
  SpaceError,
  type StoredChain,
  type StoredManifest,
  type StoredSnapshot,
  type StoreSuccession,
  type TenantId,
  type TenantRecord,
  type WorkerId,
} from "@space/model";
import { MemoryKeptSnapshots } from "./memory-kept-snapshots.ts";
import { PlaceIndex, TimeIndex } from "./memory-row-index.ts";
import {
  changeRow,
  isListed,
  liveStates,
  mayChange,
  newestSnapshot,
  newRow,
  type SandboxRow,
  stale,
  subjectOf,
} from "./memory-sandbox-rows.ts";
import { MemorySigningKeys } from "./memory-signing-keys.ts";

type SnapshotPage = { readonly after: SandboxId | null; readonly limit: number };
type StoredLease = NonNullable<ReceiverRecord["lease"]>;

interface Order {
  readonly workerId: WorkerId;
  readonly sandboxId: SandboxId;
  readonly subject: string;
  pending: PendingSideEffect;
}

/** What a control plane's database holds, with every rule of the real one; each call is one write, or one read, whole. */
export class MemoryControlTables {
  readonly #rows = new Map<SandboxId, SandboxRow>();
  readonly #due = new TimeIndex(dueMs);
  readonly #claimed = new TimeIndex(({ claim }) => claim?.untilMs ?? Number.POSITIVE_INFINITY);
  readonly #recoverable = new TimeIndex(recoverableMs);
  readonly #places = new PlaceIndex();
  readonly #tenants = new Map<TenantId, TenantRecord & { live: number }>();
  readonly #keys = new Map<Digest, ApiKeyRecord & { revoked: boolean }>();
  readonly signingKeys = new MemorySigningKeys();
  readonly kept = new MemoryKeptSnapshots(() => this.all());
  readonly #idempotency = new Map<string, { readonly sandboxId: SandboxId; readonly fingerprint: Digest }>();
  readonly #idempotencyOf = new Map<SandboxId, string>();
  readonly #orders = new Map<number, Order>();
  readonly #enrolments = new Map<WorkerId, { readonly token: string; readonly previous: string | null }>();
  readonly #receivers = new Map<WorkerId, ReceiverRecord>();
  #receiverList: readonly ReceiverRecord[] | undefined;
  #orderId = 0;
  /** Told of every change of a sandbox's row, in the instant in which it is durable. */
  onChange: (before: SandboxRecord | undefined, after: SandboxRecord) => void = () => undefined;

  /** Told of every order that is written, and of every one that its worker has confirmed. */
  onOrder: (effect: SideEffect, isConfirmed: boolean) => void = () => undefined;

  read(sandboxId: SandboxId): SandboxRecord | undefined {
    return this.#rows.get(sandboxId)?.record;
  }

  /** Every sandbox that has not been purged. */
  all(): readonly SandboxRecord[] {
    return this.#where(() => true);
  }

  begin(sandbox: NewSandbox): BeginOutcome {
    const { idempotency, tenantId, identity } = sandbox;
    const name = idempotency && `${tenantId} ${idempotency.key}`;
    const repeated = name === undefined ? undefined : this.#idempotency.get(name);
    if (repeated !== undefined) return { kind: "repeated", ...repeated };
    if (!this.kept.mayBeginWith(sandbox)) return { kind: "origin-gone" };
    const tenant = this.#tenant(tenantId);
    if (tenant.live >= tenant.sandboxLimit) return { kind: "limit", limit: tenant.sandboxLimit };
    tenant.live += 1;
    const { sandboxId } = identity;
    const row = newRow(sandbox);
    this.#rows.set(sandboxId, row);
    this.#file(undefined, row);
    if (name !== undefined && idempotency !== undefined) {
      this.#idempotency.set(name, { sandboxId, fingerprint: idempotency.fingerprint });
      this.#idempotencyOf.set(sandboxId, name);
    }
    this.onChange(undefined, row.record);
    return { kind: "begun", record: row.record };
  }

  change(request: ChangeRequest, nowMs: number): ChangeOutcome {
    const { on, change, effects = [] } = request;
    const row = this.#rows.get(on.sandboxId);
    if (row === undefined || !mayChange(row, request)) return stale;
    const before = row.record;
    const tenant = this.#tenant(before.tenantId);
    if (change.kind === "claim-resume" && tenant.live >= tenant.sandboxLimit)
      return { kind: "limit", limit: tenant.sandboxLimit };
    changeRow(row, change, nowMs);
    this.#file(before, row);
    tenant.live += Number(liveStates.has(row.record.state)) - Number(liveStates.has(before.state));
    if (change.kind === "fail") this.#forgetKey(on.sandboxId);
    if (change.kind === "keep-snapshot") this.kept.keep(change.kept);
    this.onChange(before, row.record);
    return { kind: "won", record: row.record, effects: this.enqueue(effects) };
  }

  list(tenantId: TenantId, query: ListSandboxes): readonly SandboxRecord[] {
    const sign = query.order === "asc" ? 1 : -1;
    const order = (a: Position, b: Position): number =>
      sign *
      (a.startedAtMs - b.startedAtMs || (a.sandboxId < b.sandboxId ? -1 : a.sandboxId > b.sandboxId ? 1 : 0));
    const { after } = query;
    return this.#where((record) => record.tenantId === tenantId && isListed(record, query))
      .filter((record) => after === undefined || order(record, after) > 0)
      .toSorted(order)
      .slice(0, query.limit);
  }

  due(nowMs: number, limit: number): readonly SandboxRecord[] {
    return this.#due.until(nowMs, limit);
  }

  abandoned(nowMs: number, limit: number): readonly SandboxRecord[] {
    return this.#claimed.until(nowMs, limit);
  }

  recoverable(nowMs: number, limit: number): readonly SandboxRecord[] {
    return this.#recoverable.after(nowMs, limit);
  }

  onWorker(workerId: WorkerId): readonly SandboxRecord[] {
    return this.#places.on(workerId);
  }

  live(): readonly SandboxRecord[] {
    return this.#where(({ state, snapshot }) => {
      const isSettled = state === "paused" || state === "killed" || state === "failed";
      return !isSettled || (snapshot?.frozenOn ?? null) !== null;
    });
  }

  load(): ReadonlyMap<WorkerId, number> {
    return this.#places.load();
  }

  manifest(sandboxId: SandboxId, digest: Digest): StoredManifest | undefined {
    const row = this.#rows.get(sandboxId);
    const manifest = row?.manifests.get(digest);
    if (row === undefined || manifest === undefined) return undefined;
    const { countersigned, generation } = manifest;
    return { countersigned, executionPublicKey: row.publicKeys.get(generation) ?? "" };
  }

  chain(sandboxId: SandboxId): StoredChain {
    const row = this.#rows.get(sandboxId);
    const manifests = [...(row?.manifests.values() ?? [])]
      .map(({ countersigned }) => countersigned)
      .toReversed();
    return { certificates: (row?.certificates ?? []).map(({ token }) => token), manifests };
  }

  links(sandboxId: SandboxId, { after, through }: { after: bigint; through: bigint }): ChainLinks {
    const row = this.#rows.get(sandboxId);
    const certificates: ChainToken[] = [];
    for (const link of row?.certificates ?? []) {
      if (link.generation <= after) break; // the newest come first
      if (link.generation <= through) certificates.unshift(link);
    }
    const manifests: ChainToken[] = [];
    for (const { countersigned, generation } of row?.manifests.values() ?? [])
      if (generation >= after && generation < through) manifests.push({ generation, token: countersigned });
    return { certificates, manifests };
  }

  segments(sandboxId: SandboxId, limit: number): readonly SealedSegment[] {
    return this.#rows.get(sandboxId)?.segments.slice(0, limit) ?? [];
  }

  snapshots(tenantId: TenantId, { after, limit }: SnapshotPage): readonly StoredSnapshot[] {
    return [...this.#rows.values()]
      .flatMap((row) => (row.record.tenantId === tenantId ? newestSnapshot(row) : []))
      .filter(({ sandboxId }) => after === null || sandboxId > after)
      .toSorted((a, b) => (a.sandboxId < b.sandboxId ? -1 : 1))
      .slice(0, limit);
  }

  pausing(tenantId: TenantId): readonly SandboxRecord[] {
    return this.#where((record) => record.tenantId === tenantId && record.state === "pausing");
  }

  enqueue(effects: readonly SideEffect[]): readonly PendingSideEffect[] {
    if (effects.length === 0) return [];
    return effects.map((effect) => {
      const subject = subjectOf(effect);
      const sandboxId = effect.kind === "retire" ? effect.identity.sandboxId : effect.sandboxId;
      const workerId = effect.kind === "retire" ? effect.identity.placement.workerId : effect.workerId;
      if (!this.#rows.has(sandboxId)) throw new SpaceError("internal/bug", { where: "store constraint" });
      for (const [id, order] of this.#orders) if (order.subject === subject) this.#orders.delete(id);
      this.onOrder(effect, false);
      this.#orderId += 1;
      const pending = { id: this.#orderId, effect, attempts: 0, notBeforeMs: 0 };
      this.#orders.set(pending.id, { workerId, sandboxId, subject, pending });
      return pending;
    });
  }

  pending({ workerId, sandboxId, dueMs, limit, afterId = 0 }: PendingQuery): readonly PendingSideEffect[] {
    const found: PendingSideEffect[] = [];
    for (const order of this.#orders.values()) {
      if (found.length >= limit) break;
      if (order.pending.id <= afterId) continue;
      const isMeant =
        (workerId === undefined || order.workerId === workerId) &&
        (sandboxId === undefined || order.sandboxId === sandboxId);
      if (isMeant && (dueMs === undefined || order.pending.notBeforeMs <= dueMs)) found.push(order.pending);
    }
    return found;
  }

  succeed(workerId: WorkerId, { held, next }: StoreSuccession): boolean {
    const known = this.#enrolments.get(workerId);
    const follows = known === undefined ? held === null : known.token === held;
    const isAgain = known?.token === next && known.previous === held;
    if (!follows && !isAgain) return false;
    this.#enrolments.set(workerId, { token: next, previous: held });
    return true;
  }

  enrolled(): readonly WorkerId[] {
    return [...this.#enrolments.keys()].toSorted();
  }

  receivers(): readonly ReceiverRecord[] {
    this.#receiverList ??= [...this.#receivers.values()].sort((a, b) => (a.workerId < b.workerId ? -1 : 1));
    return this.#receiverList;
  }

  acknowledgeOrder(workerId: WorkerId, position: number): void {
    const order = this.#orders.get(position);
    if (order?.workerId === workerId) {
      this.#orders.delete(position);
      this.onOrder(order.pending.effect, true);
    }
    const receiver = this.#receiver(workerId);
    this.#setReceiver({ ...receiver, position: Math.max(receiver.position, position) });
  }

  acknowledgeBundle(workerId: WorkerId, version: number): void {
    const receiver = this.#receiver(workerId);
    const bundleVersion = Math.max(receiver.bundleVersion, version);
    this.#setReceiver({ ...receiver, bundleVersion });
  }

  recordLease(workerId: WorkerId, lease: StoredLease): StoredLease | undefined {
    for (const order of this.#orders.values())
      if (order.workerId === workerId && order.pending.effect.kind === "retire") return undefined;
    const receiver = this.#receiver(workerId);
    const held = receiver.lease;
    const isLater = held === null || held.grantedAtMs + held.termMs < lease.grantedAtMs + lease.termMs;
    const next = isLater ? lease : { ...held, grantedAtMs: held.grantedAtMs + 1 };
    this.#setReceiver({ ...receiver, lease: next });
    return next;
  }

  #receiver(workerId: WorkerId): ReceiverRecord {
    return this.#receivers.get(workerId) ?? { workerId, position: 0, bundleVersion: 0, lease: null };
  }

  #setReceiver(receiver: ReceiverRecord): void {
    this.#receivers.set(receiver.workerId, receiver);
    this.#receiverList = undefined;
  }

  postpone(id: number, notBeforeMs: number): void {
    const order = this.#orders.get(id);
    if (order !== undefined)
      order.pending = { ...order.pending, attempts: order.pending.attempts + 1, notBeforeMs };
  }

  purge(beforeMs: number, limit: number): number {
    const owing = new Set([...this.#orders.values()].map(({ sandboxId }) => sandboxId));
    let removed = 0;
    for (const [sandboxId, { record, changedAtMs }] of this.#rows) {
      const isDead = record.state === "killed" || record.state === "failed";
      if (!isDead || changedAtMs >= beforeMs || owing.has(sandboxId)) continue;
      if (removed >= limit) break;
      this.#rows.delete(sandboxId);
      this.#forgetKey(sandboxId);
      removed += 1;
    }
    return removed;
  }

  addTenant(tenant: TenantRecord): boolean {
    if (this.findTenant(tenant.name) !== undefined) return false;
    this.#tenants.set(tenant.tenantId, { ...tenant, live: 0 });
    return true;
  }

  findTenant(name: string): TenantRecord | undefined {
    for (const { live: _live, ...tenant } of this.#tenants.values()) if (tenant.name === name) return tenant;
    return undefined;
  }

  addApiKey(key: ApiKeyRecord): void {
    this.#keys.set(key.hash, { ...key, revoked: false });
  }

  findApiKey(hash: Digest): ApiKeyRecord | undefined {
    const found = this.#keys.get(hash);
    if (found === undefined || found.revoked) return undefined;
    const { revoked: _revoked, ...key } = found;
    return key;
  }

  revokeApiKey(keyId: string): boolean {
    for (const key of this.#keys.values()) {
      if (key.keyId !== keyId || key.revoked) continue;
      key.revoked = true;
      return true;
    }
    return false;
  }

  #tenant(tenantId: TenantId): TenantRecord & { live: number } {
    const tenant = this.#tenants.get(tenantId);
    if (tenant === undefined) throw new SpaceError("internal/bug", { where: "tenant of a sandbox" });
    return tenant;
  }

  #forgetKey(sandboxId: SandboxId): void {
    const name = this.#idempotencyOf.get(sandboxId);
    if (name !== undefined) this.#idempotency.delete(name);
    this.#idempotencyOf.delete(sandboxId);
  }

  #file(before: SandboxRecord | undefined, row: SandboxRow): void {
    this.#due.file(row);
    this.#claimed.file(row);
    this.#recoverable.file(row);
    this.#places.file(before, row);
  }

  #where(condition: (record: SandboxRecord) => boolean): SandboxRecord[] {
    const found: SandboxRecord[] = [];
    for (const { record } of this.#rows.values()) if (condition(record)) found.push(record);
    return found;
  }
}

/** When the life of what is there ends: of what runs, and of what is lost and need not be kept. */
function dueMs({ state, endAtMs, onTimeout, snapshot }: SandboxRecord): number {
  const mayEnd = state === "running" || (state === "lost" && (onTimeout === "kill" || snapshot === null));
  return mayEnd ? endAtMs : Number.POSITIVE_INFINITY;
}

/** Until when what is lost is brought back by itself. */
function recoverableMs({ state, autoRecover, snapshot, endAtMs }: SandboxRecord): number {
  const isMeant = state === "lost" && autoRecover && snapshot !== null;
  return isMeant ? endAtMs : Number.POSITIVE_INFINITY;
}

type Position = Pick<SandboxRecord, "startedAtMs" | "sandboxId">;
