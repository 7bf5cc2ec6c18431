// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import {
  isSpaceError,
  type LeaseAnswer,
  type LeaseRequest,
  type ReceiverFeed,
  type SandboxRecord,
  SpaceError,
  type StoredKeyBundle,
  type WorkerControl,
  type WorkerHandle,
  type WorkerHello,
  type WorkerId,
  type WorkerPresence,
  type WorkerReport,
  type WorkerWelcome,
} from "@space/model";
import {
  decodeJson,
  FrameLink,
  type LinkStream,
  receiverFeedOver,
  rpcMethod,
  type StreamHandlers,
  serveRpc,
  workerControlClient,
  workerPresenceHandlers,
} from "@space/wire";
import { compareRecords } from "./compare-records.ts";
import { codeOf } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import { reconcileWorker } from "./reconcile-worker.ts";
import { recoverAbandoned, recoverOn } from "./recovery.ts";
import { takeReport } from "./take-report.ts";
import { within } from "./transitions.ts";

/** A worker's ends of one link. */
interface Commands {
  readonly control: WorkerControl;
  readonly feed: ReceiverFeed;
}

/** The links of workers to this control plane. TLS has proved who each is; what a worker says must agree with that. */
export class WorkerLinks {
  readonly #parts: ControlParts;
  readonly #links = new Set<FrameLink>();

  constructor(parts: ControlParts) {
    this.#parts = parts;
  }

  /** Serves one link until it ends. `workerId` is the one that the peer's certificate names. */
  accept(socket: Duplex, workerId: WorkerId): void {
    const presence = new AcceptedWorker(this.#parts, workerId, () => link.destroy(undefined));
    const handlers = workerPresenceHandlers(presence);
    const link = new FrameLink(socket, {
      dialled: false,
      onOpen: (stream, head) => serveCommand(stream, head, handlers),
      onClose: () => {
        this.#links.delete(link);
        presence.gone();
      },
      onBug: (error) => {
        this.#parts.audit.record("worker/refused", { workerId, problem: codeOf(error) });
      },
    });
    this.#links.add(link);
    const control = workerControlClient(link, this.#parts.clock, workerId);
    presence.begin({ control, feed: receiverFeedOver(link) }, () => link.ping());
  }

  close(): void {
    for (const link of [...this.#links]) link.destroy(undefined);
  }
}

function serveCommand(
  stream: LinkStream,
  head: Buffer,
  handlers: ReturnType<typeof workerPresenceHandlers>,
): StreamHandlers {
  const value = readCommand(head);
  const rpc = rpcMethod(value);
  if (rpc === undefined) throw new SpaceError("link/protocol", { problem: "not a command" });
  const params = typeof value === "object" && value !== null && "params" in value ? value.params : null;
  return serveRpc(stream, { rpc, params }, handlers);
}

function readCommand(head: Buffer): unknown {
  try {
    return decodeJson(head.toString("utf8"));
  } catch (cause) {
    throw new SpaceError("link/protocol", { problem: "not JSON" }, { cause });
  }
}

/** What a hello and the store said of each other. */
interface Agreement {
  readonly running: number;
  readonly ended: number;
  readonly lost: number;
}

/**
 * One worker behind one link: says hello once, is told what it has not acknowledged, is reconciled, gets a lease, and is
 * then in the directory until the link ends.
 */
export class AcceptedWorker implements WorkerPresence {
  readonly #parts: ControlParts;
  readonly #workerId: WorkerId;
  readonly #cutOff: () => void;
  #commands: Commands | undefined;
  #handle: WorkerHandle | undefined;
  /** Resolves when both sides agree on what runs. */
  readonly #joined = Promise.withResolvers<Agreement>();
  #cancelWatch: () => void = () => undefined;
  #isGone = false;
  #isIn = false;

  constructor(parts: ControlParts, workerId: WorkerId, cutOff: () => void) {
    this.#parts = parts;
    this.#workerId = workerId;
    this.#cutOff = cutOff;
  }

  /** Waits for the hello, and watches that the worker answers. */
  begin(commands: Commands, ping: () => Promise<void>): void {
    this.#commands = commands;
    this.#watch(ping);
  }

  async hello(hello: WorkerHello): Promise<WorkerWelcome> {
    const commands = this.#commands;
    if (hello.workerId !== this.#workerId) throw this.#refuse("another worker's id"); // TLS says who it is
    if (commands === undefined || this.#handle !== undefined) throw this.#refuse("a second hello");
    await this.#parts.feeds.refresh();
    this.#refuseOlderStore(hello);
    await this.#succeed(hello);
    const believed = await this.#parts.sandboxes.onWorker(this.#workerId);
    const { workerId, endpoint, capacity, substrate, podUid } = hello;
    const keys = this.#parts.feeds.keysOver(this.#workerId, commands.feed);
    const handle = { workerId, endpoint, capacity, substrate, podUid, ...commands, keys };
    this.#handle = handle;
    // The worker takes the welcome before any command: so the commands begin after it.
    setImmediate(() => void this.#join({ handle, hello, believed }));
    const { version, token } = this.#parts.rotation.bundleForWorkers;
    return { bundle: hello.bundleVersion < version ? token : null };
  }

  async report(report: WorkerReport): Promise<void> {
    if (report.identity.placement.workerId !== this.#workerId)
      throw this.#refuse("another worker's execution");
    await takeReport(this.#parts, report);
  }

  /** once both sides agree on what runs; until then it is withheld. */
  async renew(request: LeaseRequest): Promise<LeaseAnswer> {
    const { parts, workerId, handle } = {
      parts: this.#parts,
      workerId: this.#workerId,
      handle: this.#handle,
    };
    const { clock, limits, leases, audit } = parts;
    const agreement = await within(clock, limits.leaseWaitMs, this.#joined.promise);
    if (handle === undefined || agreement === undefined)
      return { kind: "withheld", retryMs: limits.leaseRetryMs };
    try {
      await compareRecords(parts, handle, request.records);
    } catch (error) {
      if (!isSpaceError(error)) throw error; // tried again with the next request
      audit.record("upkeep/failed", { task: "compare records", sandboxId: null, code: codeOf(error) });
    }
    // what was announced since it joined, it has heard from nobody as long as it has no lease.
    const owed = (): StoredKeyBundle => parts.rotation.bundleForWorkers;
    await parts.receivers.bringUpToDate(handle.keys, owed);
    const answer = await leases.renew(workerId, request, () => owed().version);
    if (answer.kind === "granted") this.#enter(handle, agreement);
    return answer;
  }

  /** given work only once it has a lease. */
  #enter(handle: WorkerHandle, agreement: Agreement): void {
    const { workers, audit } = this.#parts;
    if (this.#isGone || this.#isIn) return;
    this.#isIn = true;
    workers.add(handle);
    audit.record("worker/connected", { workerId: this.#workerId, ...agreement });
    // A pause that nobody drives could not be ended while the worker might not serve.
    recoverAbandoned(this.#parts)
      .then(() => recoverOn(this.#parts, this.#workerId))
      .catch((error: unknown) => {
        audit.record("upkeep/failed", { task: "recovery", sandboxId: null, code: codeOf(error) });
      });
  }

  /** The link has ended. What runs there goes on; a daemon that comes back says hello again. */
  gone(): void {
    this.#isGone = true;
    this.#cancelWatch();
    if (this.#commands !== undefined) this.#parts.feeds.detachIfStillAt(this.#workerId, this.#commands.feed);
    if (this.#handle !== undefined && this.#parts.workers.removeIfStillAt(this.#handle)) {
      this.#parts.audit.record("worker/disconnected", { workerId: this.#workerId });
    }
  }

  async #join(joining: {
    readonly handle: WorkerHandle;
    readonly hello: WorkerHello;
    readonly believed: readonly SandboxRecord[];
  }): Promise<void> {
    const { handle, hello, believed } = joining;
    const { parts, workerId } = { parts: this.#parts, workerId: this.#workerId };
    try {
      // it can verify what it is told from here on.
      await parts.receivers.bringUpToDate(handle.keys, () => parts.rotation.bundleForWorkers);
      await parts.feeds.attach(workerId, handle.feed);
      const found = await reconcileWorker(parts, { worker: handle, inventory: hello.inventory, believed });
      this.#joined.resolve({ running: hello.inventory.installed.length, ...found });
    } catch (error) {
      parts.audit.record("worker/refused", { workerId, problem: codeOf(error) });
      this.#cutOff(); // it dials again, and everything above is repeated
    }
  }

  /** Cuts off a worker that neither says hello nor answers. */
  #watch(ping: () => Promise<void>): void {
    const { clock, limits } = this.#parts;
    this.#cancelWatch = clock.after(limits.silenceMs, () => {
      if (this.#handle === undefined) {
        this.#cutOff();
        return;
      }
      void this.#askAlive(ping);
    });
  }

  async #askAlive(ping: () => Promise<void>): Promise<void> {
    const { clock, limits } = this.#parts;
    try {
      const answered = await within(
        clock,
        limits.silenceMs,
        ping().then(() => true),
      );
      if (answered === undefined) this.#cutOff();
      else if (!this.#isGone) this.#watch(ping);
    } catch {
      this.#cutOff(); // the link has ended already, or is of no use
    }
  }

  /** what it has acknowledged it has applied. One that knows of less is an older copy of itself. */
  #refuseOlderStore({ feedPosition, bundleVersion }: WorkerHello): void {
    const acknowledged = this.#parts.feeds.acknowledged(this.#workerId);
    if (feedPosition < acknowledged.position || bundleVersion < acknowledged.bundleVersion)
      throw this.#refuseStore();
  }

  /** A worker's identity is bound to its store: one that another connection has replaced is not this worker. */
  async #succeed({ store }: WorkerHello): Promise<void> {
    const { enrolments, clock } = this.#parts;
    if (!(await enrolments.succeed(this.#workerId, store, clock.wallMs()))) throw this.#refuseStore();
    if (store.held !== null) return;
    this.#parts.audit.record("worker/enrolled", {
      workerId: this.#workerId,
      reason: "its store was never connected",
    });
  }

  #refuseStore(): SpaceError {
    const workerId = this.#workerId;
    this.#parts.audit.record("worker/refused", { workerId, problem: "its store is older, or a copy" });
    return new SpaceError("worker/superseded", { workerId });
  }

  #refuse(problem: string): SpaceError {
    this.#parts.audit.record("worker/refused", { workerId: this.#workerId, problem });
    return new SpaceError("certificate/refused", { problem });
  }
}
