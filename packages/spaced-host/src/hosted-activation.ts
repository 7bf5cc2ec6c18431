// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type Clock,
  type Random,
  type SandboxId,
  type Secret,
  SpaceError,
} from "@space/model";
import { type GuestCredentials, GuestPool, SmallFiles } from "@space/spaced-guest";
import { encodeCarried } from "./carried-codec.ts";
import type { CarriedState } from "./carried-state.ts";
import { carriedState, Restoring } from "./carry.ts";
import { ContinuedStreams } from "./continued-streams.ts";
import { EnvdError } from "./envd-error.ts";
import type { Exchange } from "./exchange.ts";
import { FolderWatches } from "./folder-watches.ts";
import type { GuestEndpoint } from "./guest-endpoint.ts";
import { GuestUsers } from "./guest-users.ts";
import type { HostedProcess } from "./hosted-process.ts";
import { InputMemory } from "./input-memory.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { ProcessTable } from "./process-table.ts";
import { RunningTime } from "./running-time.ts";
import { StartMemory } from "./start-memory.ts";

/** Operations of one sandbox that may be under way. */
const exchangeLimit = 2_000;
/** Connections lent to operations at once; slow transfers, processes and port connections have their own limits. */
const pooledConnections = 16;
/** A sandbox that has not been asked for anything for this long keeps only a few connections. */
const quietMs = 30_000;
/** Port connections open at once. */
const dialLimit = 1_000;
const requestMemoryBytes = 64 * 1024 * 1024;
/** Longest wait for the guest to let go of a process's old connection. */
const detachLimitMs = 5_000;

/** What the worker says of the sandbox behind an activation. */
export interface SandboxFacts {
  readonly sandboxId: SandboxId;
  readonly template: string;
  /** Sandbox-wide variables, E2B's own included. */
  readonly variables: Readonly<Record<string, string>>;
  readonly defaultUser: string;
  readonly workdir: string;
  /** Nothing has run in the sandbox before. */
  readonly isFirst: boolean;
}

export interface ActivationStart {
  readonly facts: SandboxFacts;
  readonly endpoint: GuestEndpoint;
  readonly carried: CarriedState | undefined;
}

export interface ActivationPorts {
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * One activation that this process serves: its guest's verified connections, processes and users, and the operations
 * under way. Nothing of it is shared with another activation.
 */
export class HostedActivation {
  facts: SandboxFacts;
  readonly ports: ActivationPorts;
  readonly users: GuestUsers;
  readonly processes: ProcessTable;
  /** what is remembered of streams, inputs and starts, for as long as this bridge serves the processes. */
  readonly streams: ContinuedStreams;
  readonly inputs: InputMemory;
  readonly starts: StartMemory;
  readonly watches: FolderWatches;
  readonly #time: RunningTime;
  readonly requestMemory: MemoryBudget = new MemoryBudget(requestMemoryBytes);
  readonly #exchanges = new Set<Exchange>();
  readonly #short = new Set<Exchange>();
  readonly #idleWaiters: (() => void)[] = [];
  #endpoint: GuestEndpoint;
  #pool: GuestPool;
  #files: SmallFiles;
  #hasLetGo = false;
  /** What another bridge knew, until it has been taken up here; and what this one knows, for the next. */
  #restoring: Restoring | undefined;
  #carried: Buffer | undefined;
  #isNew = true;
  #dials = 0;
  #cancelTrim: (() => void) | undefined;

  /** `carried`: the guest was restored, and this is what its bridge knew when it was saved. */
  constructor({ facts, endpoint, carried }: ActivationStart, ports: ActivationPorts) {
    this.facts = facts;
    this.ports = ports;
    this.#endpoint = endpoint;
    this.#pool = newPool(endpoint, ports.clock);
    this.#files = new SmallFiles(this.#pool, ports.clock);
    this.users = new GuestUsers(this.#pool, ports.clock);
    this.processes = new ProcessTable(ports.clock, () => this.users.forget());
    this.#time = new RunningTime(ports.clock);
    this.streams = new ContinuedStreams(ports.clock, this.#time);
    this.inputs = new InputMemory(this.#time, facts.isFirst);
    this.starts = new StartMemory(ports.clock, facts.isFirst);
    this.watches = new FolderWatches(ports.clock, ports.random);
    if (carried !== undefined) this.#restoring = new Restoring(this, carried);
  }

  get id(): ActivationId {
    return this.#endpoint.identity.activationId;
  }

  get endpoint(): GuestEndpoint {
    return this.#endpoint;
  }

  get pool(): GuestPool {
    return this.#pool;
  }

  get files(): SmallFiles {
    return this.#files;
  }

  /**
   * makes every check on a new connection, before anything is served and again when a daemon re-adopts it. That
   * connection is the first that serves: it reads the users ahead, and then others are opened beside it.
   */
  async verify(): Promise<void> {
    if (this.#hasLetGo) this.#replacePool(this.#endpoint);
    const pool = this.#pool;
    pool.readmit(await this.#endpoint.open());
    // Whoever needs the users meets the error himself.
    void this.users
      .table()
      .catch(() => undefined)
      .then(() => pool.warm());
    if (!this.#hasLetGo && !this.#isNew) return;
    this.#hasLetGo = false;
    this.#carried = undefined;
    await this.#takeUp();
    if (this.#isNew && !this.facts.isFirst) await this.#forsakeOthers();
    this.#isNew = false;
  }

  /** what the next bridge needs, once the guest was let go of; the same until it is taken up again. */
  carried(): Buffer {
    if (!this.#hasLetGo) throw new SpaceError("endpoint/unverifiable", { problem: "not let go of" });
    this.#carried ??= encodeCarried(carriedState(this));
    return this.#carried;
  }

  /** Whether the guest was made to let go of everything: nothing reaches it until it is verified anew. */
  get hasLetGo(): boolean {
    return this.#hasLetGo;
  }

  /** The guest closes its socket and every connection. Its processes wait, as at a rekey. */
  async letGo(): Promise<void> {
    const detached = this.processes.list().map((process) => process.expectRekey());
    this.watches.expectRekey();
    await this.#pool.use((guest) => guest.quiesce());
    this.#hasLetGo = true;
    this.#files.close();
    this.#pool.close();
    await withinLimit(this.ports.clock, detachLimitMs, Promise.all(detached));
  }

  /** Takes note of an operation. `short` ones are waited for by `settle`. Throws `resource_exhausted`. */
  enter(exchange: Exchange, short: boolean): void {
    if (this.#exchanges.size >= exchangeLimit) {
      throw new EnvdError("resource_exhausted", "too many operations are under way in this sandbox");
    }
    this.#time.go();
    this.#exchanges.add(exchange);
    if (short) this.#short.add(exchange);
    exchange.onOver(() => {
      this.#exchanges.delete(exchange);
      if (this.#exchanges.size === 0) this.#trimWhenQuiet();
      if (!this.#short.delete(exchange) || this.#short.size > 0) return;
      for (const resolve of this.#idleWaiters.splice(0)) resolve();
    });
  }

  /** Counts a port connection; the returned function ends it. Throws `resource_exhausted`. */
  enterDial(): () => void {
    if (this.#dials >= dialLimit) {
      throw new EnvdError("resource_exhausted", "too many connections to this sandbox's ports");
    }
    this.#dials += 1;
    return () => {
      this.#dials -= 1;
    };
  }

  /** Waits for short operations to end; those that have not by then are cut, and it resolves with false. */
  async settle(limitMs: number): Promise<boolean> {
    if (this.#short.size === 0) return true;
    await withinLimit(
      this.ports.clock,
      limitMs,
      new Promise<void>((resolve) => this.#idleWaiters.push(resolve)),
    );
    const late = [...this.#short];
    for (const exchange of late) exchange.reset("quiesced");
    return late.length === 0;
  }

  /** Nothing is asked of the guest until it goes on: it is about to be frozen. */
  standStill(): void {
    this.#time.stop();
  }

  /**
   * The guest, and every process in it, goes on under another id. Streams end. When the guest has the new name already
   * (an earlier attempt's answer was lost) only this side changes.
   */
  async rekey(to: ActivationId, secret: Secret<Uint8Array>): Promise<void> {
    this.#resetAll("rekeyed");
    const next = this.#endpoint.renamed(to, secret);
    const detached = this.processes.list().map((process) => process.expectRekey());
    this.watches.expectRekey();
    await renameGuest(this.#endpoint, next);
    this.#replacePool(next);
    this.#hasLetGo = false;
    this.#carried = undefined;
    await withinLimit(this.ports.clock, detachLimitMs, Promise.all(detached));
    await this.#takeUp();
  }

  /** Ends every stream, process and connection. */
  close(): void {
    this.streams.close("released");
    this.#resetAll("released");
    this.processes.clear();
    this.watches.clear();
    this.#files.close();
    this.#pool.close();
    this.#cancelTrim?.();
  }

  #trimWhenQuiet(): void {
    this.#cancelTrim ??= this.ports.clock.after(quietMs, () => {
      this.#cancelTrim = undefined;
      if (this.#exchanges.size > 0) return;
      this.#files.trim();
      this.#pool.trim();
    });
  }

  #replacePool(endpoint: GuestEndpoint): void {
    this.#files.close();
    this.#pool.close();
    this.#endpoint = endpoint;
    this.#pool = newPool(endpoint, this.ports.clock);
    this.#files = new SmallFiles(this.#pool, this.ports.clock);
    this.users.replacePool(this.#pool);
  }

  /** Goes on with the processes and the watches that wait for it. */
  async #takeUp(): Promise<void> {
    const waiting = this.processes.list().map((process) => this.#reattach(process));
    await Promise.all([this.watches.renew(this.#pool), ...waiting]);
    await this.#restoring?.watchAgain();
    this.#restoring = undefined;
    this.#time.go();
  }

  /** A restored guest's processes wait for whoever knows them: nobody knows of the others, and they are not to stand still. */
  async #forsakeOthers(): Promise<void> {
    try {
      await this.#pool.use((guest) => guest.forsake());
    } catch {
      // A guest that cannot be told has nothing that waits, or is gone: whoever asks it next is told.
    }
  }

  async #reattach(process: HostedProcess): Promise<void> {
    const { detached } = process;
    if (detached === undefined) return process.abandon(); // it has ended, or its old connection never did
    try {
      const pool = this.#pool;
      const connection = await pool.detach();
      process.started(await connection.attach(detached));
      process.onceOver(() => pool.readmit(connection));
    } catch {
      process.abandon(); // the guest does not have it any more: for its callers it is lost
    }
  }

  #resetAll(reason: string): void {
    for (const exchange of [...this.#exchanges]) exchange.reset(reason);
  }
}

function newPool(endpoint: GuestEndpoint, clock: Clock): GuestPool {
  return new GuestPool({
    open: () => endpoint.open(),
    clock,
    maxConnections: pooledConnections,
    keptConnections: pooledConnections,
  });
}

function credentials({ identity }: GuestEndpoint): GuestCredentials {
  return { activationId: identity.activationId, secret: identity.secret.reveal() };
}

async function renameGuest(from: GuestEndpoint, to: GuestEndpoint): Promise<void> {
  let connection: Awaited<ReturnType<GuestEndpoint["open"]>>;
  try {
    connection = await from.open();
  } catch (error) {
    try {
      (await to.open()).destroy();
      return;
    } catch {
      throw error; // it has neither name: the first refusal says why
    }
  }
  try {
    await connection.rekey(credentials(from), credentials(to));
  } finally {
    connection.destroy();
  }
}

/** Waits for the work, but no longer than the limit. Whether it was done; rejects when the work does in time. */
export function withinLimit(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => resolve(false));
    work.then(() => resolve(true), reject).finally(cancel);
  });
}
