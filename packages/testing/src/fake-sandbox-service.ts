// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes } from "node:crypto";

import {
  type ApiCaller,
  type Clock,
  type ConnectedSandbox,
  type ConnectSandbox,
  type CreateSandbox,
  type ForkedSandbox,
  type ForkSandbox,
  isSpaceError,
  type ListSandboxes,
  type ListSnapshots,
  type MovedSandbox,
  type MoveSandbox,
  newSandboxId,
  newSnapshotId,
  parseDigest,
  parseWorkerId,
  type SandboxId,
  type SandboxService,
  type SandboxView,
  Secret,
  type SnapshotService,
  type SnapshotView,
  SpaceError,
} from "@space/model";

const defaultWorker = parseWorkerId("wrk_aaaaaaaaaaaaaaaa");
/** The only one to which memory can be moved. */
const otherWorker = parseWorkerId("wrk_bbbbbbbbbbbbbbbb");

interface Held {
  readonly tenantId: ApiCaller["tenantId"];
  view: SandboxView;
}

export interface FakeServiceOptions {
  readonly clock: Clock;
  /** API key to its caller. */
  readonly keys: ReadonlyMap<string, ApiCaller>;
  readonly templates?: readonly string[];
  readonly sandboxesPerTenant?: number;
}

/**
 * A sandbox service in memory: it keeps tenants, states, ends and generations as the real one promises, and runs nothing.
 * `failNext` makes the next call after authentication fail.
 */
export class FakeSandboxService implements SandboxService, SnapshotService {
  readonly #options: FakeServiceOptions;
  readonly #sandboxes = new Map<SandboxId, Held>();
  #snapshots: readonly (SnapshotView & Pick<ApiCaller, "tenantId">)[] = [];
  /** What the callers asked to create, in order. */
  readonly created: CreateSandbox[] = [];
  failNext: SpaceError | undefined;

  constructor(options: FakeServiceOptions) {
    this.#options = options;
  }

  async authenticate(apiKey: Secret<string> | undefined): Promise<ApiCaller> {
    if (apiKey === undefined) throw new SpaceError("key/missing", {});
    const caller = this.#options.keys.get(apiKey.reveal());
    if (caller === undefined) throw new SpaceError("key/unknown", {});
    return caller;
  }

  async create(caller: ApiCaller, request: CreateSandbox): Promise<ConnectedSandbox> {
    this.#maybeFail();
    const { templates = ["base"], sandboxesPerTenant = 1000 } = this.#options;
    const isSnapshot = this.#snapshots.some(
      ({ tenantId, template }) => tenantId === caller.tenantId && template === request.template,
    );
    if (!isSnapshot && !templates.includes(request.template)) {
      throw new SpaceError("template/not-found", { template: request.template });
    }
    if (this.#of(caller).length >= sandboxesPerTenant) {
      throw new SpaceError("limit/sandboxes", { limit: sandboxesPerTenant });
    }
    this.created.push(request);
    const nowMs = this.#options.clock.wallMs();
    const view: SandboxView = {
      sandboxId: newSandboxId({ bytes: (length) => randomBytes(length) }),
      template: request.template,
      alias: request.template,
      metadata: request.metadata,
      state: "running",
      startedAtMs: nowMs,
      endAtMs: nowMs + request.timeoutMs,
      cpus: 2,
      memoryMb: 512,
      diskMb: 1024,
      onTimeout: request.onTimeout,
      autoResume: request.autoResume,
      autoRecover: request.autoRecover,
      lostReason: null,
      recoveredFrom: null,
      generation: 1n,
      workerId: request.workerId ?? defaultWorker,
      snapshot: null,
    };
    this.#sandboxes.set(view.sandboxId, { tenantId: caller.tenantId, view });
    return connected(view, false);
  }

  async connect(caller: ApiCaller, sandboxId: SandboxId, request: ConnectSandbox): Promise<ConnectedSandbox> {
    const held = this.#held(caller, sandboxId);
    if (held.view.state === "paused") return this.#resume(held, request);
    const endAtMs = Math.max(held.view.endAtMs, this.#options.clock.wallMs() + request.timeoutMs);
    held.view = { ...held.view, endAtMs };
    return connected(held.view, false);
  }

  async resume(caller: ApiCaller, sandboxId: SandboxId, request: ConnectSandbox): Promise<ConnectedSandbox> {
    const held = this.#held(caller, sandboxId);
    if (held.view.state !== "paused") throw conflict(held.view);
    return this.#resume(held, request);
  }

  async get(caller: ApiCaller, sandboxId: SandboxId): Promise<SandboxView> {
    return this.#held(caller, sandboxId).view;
  }

  async list(caller: ApiCaller, request: ListSandboxes): Promise<readonly SandboxView[]> {
    this.#maybeFail();
    const wanted = (view: SandboxView): boolean =>
      request.states.some((state) => state === view.state) &&
      Object.entries(request.metadata).every(([key, value]) => view.metadata[key] === value) &&
      (request.template === undefined || request.template === view.template) &&
      (request.startedAfterMs === undefined || view.startedAtMs >= request.startedAfterMs);
    const sorted = this.#of(caller).filter(wanted).sort(byStart);
    if (request.order === "desc") sorted.reverse();
    const { after } = request;
    const from = after === undefined ? 0 : sorted.findIndex((view) => isPast(view, after, request.order));
    return from === -1 ? [] : sorted.slice(from, from + request.limit);
  }

  async pause(caller: ApiCaller, sandboxId: SandboxId, keepMemory: boolean): Promise<SandboxView> {
    const held = this.#held(caller, sandboxId);
    if (held.view.state !== "running") throw conflict(held.view);
    held.view = paused(held.view, this.#options.clock.wallMs(), keepMemory);
    return held.view;
  }

  async move(caller: ApiCaller, sandboxId: SandboxId, { workerId }: MoveSandbox): Promise<MovedSandbox> {
    const held = this.#held(caller, sandboxId);
    if (held.view.state !== "running") throw conflict(held.view);
    const to = workerId ?? otherWorker;
    held.view = { ...held.view, workerId: to, generation: held.view.generation + 1n };
    return { ...held.view, memoryMoved: to === otherWorker };
  }

  async setTimeout(caller: ApiCaller, sandboxId: SandboxId, timeoutMs: number): Promise<void> {
    const held = this.#held(caller, sandboxId);
    if (held.view.state !== "running") throw conflict(held.view);
    held.view = { ...held.view, endAtMs: this.#options.clock.wallMs() + timeoutMs };
  }

  async kill(caller: ApiCaller, sandboxId: SandboxId): Promise<void> {
    this.#held(caller, sandboxId);
    this.#sandboxes.delete(sandboxId);
  }

  async snapshot(caller: ApiCaller, sandboxId: SandboxId, name: string | undefined): Promise<SnapshotView> {
    const held = this.#held(caller, sandboxId);
    if (held.view.state !== "running") throw conflict(held.view);
    const snapshotId = newSnapshotId({ bytes: (length) => randomBytes(length) });
    const named =
      name === undefined ? undefined : `${caller.tenantId}/${name.includes(":") ? name : `${name}:default`}`;
    const view: SnapshotView = {
      template: named ?? `${snapshotId}:default`,
      snapshotId,
      names: named === undefined ? [] : [named],
      sandboxId,
      digest: parseDigest("e".repeat(64)),
      memory: "none",
      sizeBytes: 4096,
      createdAtMs: this.#options.clock.wallMs(),
    };
    this.#snapshots = [{ ...view, tenantId: caller.tenantId }, ...this.#snapshots];
    return view;
  }

  async listSnapshots(caller: ApiCaller, request: ListSnapshots): Promise<readonly SnapshotView[]> {
    this.#maybeFail();
    const found = this.#snapshots.filter(
      ({ tenantId, sandboxId, names }) =>
        tenantId === caller.tenantId &&
        (request.sandboxId === undefined || request.sandboxId === sandboxId) &&
        (request.name === undefined || names.some((name) => name.includes(request.name ?? ""))),
    );
    const at = found.findIndex(({ snapshotId }) => snapshotId === request.after?.snapshotId);
    return found.slice(at + 1, at + 1 + request.limit);
  }

  async deleteSnapshot(caller: ApiCaller, template: string): Promise<void> {
    this.#maybeFail();
    const left = this.#snapshots.filter(
      (snapshot) => snapshot.tenantId !== caller.tenantId || snapshot.template !== template,
    );
    if (left.length === this.#snapshots.length) throw new SpaceError("template/not-found", { template });
    this.#snapshots = left;
  }

  async fork(
    caller: ApiCaller,
    sandboxId: SandboxId,
    { count, timeoutMs }: ForkSandbox,
  ): Promise<readonly ForkedSandbox[]> {
    const { view } = this.#held(caller, sandboxId);
    if (view.state !== "running") throw conflict(view);
    const request = { ...view, timeoutMs, variables: {}, keepMemory: true, workerId: defaultWorker };
    const forked: ForkedSandbox[] = [];
    for (let at = 0; at < count; at += 1) {
      try {
        forked.push({ kind: "sandbox", sandbox: await this.create(caller, request), memory: "none" });
      } catch (error) {
        if (!isSpaceError(error)) throw error;
        forked.push({ kind: "failed", error });
      }
    }
    return forked;
  }

  #resume(held: Held, request: ConnectSandbox): ConnectedSandbox {
    const nowMs = this.#options.clock.wallMs();
    held.view = {
      ...held.view,
      state: "running",
      startedAtMs: nowMs,
      endAtMs: nowMs + request.timeoutMs,
      generation: held.view.generation + 1n,
      workerId: request.workerId ?? held.view.workerId,
    };
    return connected(held.view, true);
  }

  /** The tenant's sandboxes, after what was due has happened. */
  #of(caller: ApiCaller): SandboxView[] {
    const nowMs = this.#options.clock.wallMs();
    for (const [sandboxId, held] of this.#sandboxes) {
      if (held.view.state !== "running" || held.view.endAtMs > nowMs) continue;
      if (held.view.onTimeout === "pause") held.view = paused(held.view, nowMs, true);
      else this.#sandboxes.delete(sandboxId);
    }
    return [...this.#sandboxes.values()]
      .filter(({ tenantId }) => tenantId === caller.tenantId)
      .map(({ view }) => view);
  }

  #held(caller: ApiCaller, sandboxId: SandboxId): Held {
    this.#maybeFail();
    this.#of(caller);
    const held = this.#sandboxes.get(sandboxId);
    if (held === undefined || held.tenantId !== caller.tenantId) {
      throw new SpaceError("sandbox/not-found", { sandboxId });
    }
    return held;
  }

  #maybeFail(): void {
    const failure = this.failNext;
    this.failNext = undefined;
    if (failure !== undefined) throw failure;
  }
}

function connected(view: SandboxView, resumed: boolean): ConnectedSandbox {
  const accessToken = new Secret(`token-of-${view.sandboxId}`);
  return { ...view, accessToken, trafficAccessToken: null, resumed };
}

function paused(view: SandboxView, nowMs: number, keepMemory: boolean): SandboxView {
  const memory = keepMemory ? "frozen-on-worker" : "none";
  return {
    ...view,
    state: "paused",
    endAtMs: nowMs,
    snapshot: { digest: parseDigest("d".repeat(64)), memory, sizeBytes: 4096 },
  };
}

function conflict({ sandboxId, state }: SandboxView): SpaceError {
  return new SpaceError("sandbox/state", { sandboxId, state });
}

type Position = Pick<SandboxView, "startedAtMs" | "sandboxId">;

function byStart(a: Position, b: Position): number {
  return a.startedAtMs - b.startedAtMs || (a.sandboxId < b.sandboxId ? -1 : 1);
}

function isPast(view: SandboxView, after: Position, order: ListSandboxes["order"]): boolean {
  if (view.sandboxId === after.sandboxId) return false;
  return order === "asc" ? byStart(view, after) > 0 : byStart(view, after) < 0;
}
