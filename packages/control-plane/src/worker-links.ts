// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import {
  type KeyBundleReceiver,
  type SandboxRecord,
  SpaceError,
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
  rpcMethod,
  type StreamHandlers,
  serveRpc,
  workerControlClient,
  workerPresenceHandlers,
} from "@space/wire";
import { codeOf } from "./failures.ts";
import type { ControlParts } from "./parts.ts";
import { reconcileWorker } from "./reconcile-worker.ts";
import { takeReport } from "./take-report.ts";
import { within } from "./transitions.ts";

type Commands = WorkerControl & KeyBundleReceiver;

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
    presence.begin(workerControlClient(link, this.#parts.clock, workerId), () => link.ping());
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

/** One worker behind one link: says hello once, is reconciled, and is then in the directory until the link ends. */
export class AcceptedWorker implements WorkerPresence {
  readonly #parts: ControlParts;
  readonly #workerId: WorkerId;
  readonly #cutOff: () => void;
  #commands: Commands | undefined;
  #handle: WorkerHandle | undefined;
  #cancelWatch: () => void = () => undefined;
  #isGone = false;

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
    const believed = await this.#parts.sandboxes.onWorker(this.#workerId);
    const { workerId, endpoint, capacity, substrate } = hello;
    const handle = { workerId, endpoint, capacity, substrate, control: commands, keys: commands };
    this.#handle = handle;
    // The worker takes the welcome before any command: so the commands begin after it.
    setImmediate(() => void this.#join({ handle, commands, hello, believed }));
    const { version, token } = this.#parts.rotation.bundleForWorkers;
    return { bundle: hello.bundleVersion < version ? token : null };
  }

  async report(report: WorkerReport): Promise<void> {
    if (report.identity.placement.workerId !== this.#workerId)
      throw this.#refuse("another worker's execution");
    await takeReport(this.#parts, report);
  }

  /** The link has ended. What runs there goes on; a daemon that comes back says hello again. */
  gone(): void {
    this.#isGone = true;
    this.#cancelWatch();
    if (this.#handle !== undefined && this.#parts.workers.removeIfStillAt(this.#handle)) {
      this.#parts.audit.record("worker/disconnected", { workerId: this.#workerId });
    }
  }

  async #join(joining: {
    readonly handle: WorkerHandle;
    readonly commands: Commands;
    readonly hello: WorkerHello;
    readonly believed: readonly SandboxRecord[];
  }): Promise<void> {
    const { handle, commands, hello, believed } = joining;
    const { parts, workerId } = { parts: this.#parts, workerId: this.#workerId };
    try {
      // it can verify what it is told from here on.
      await parts.receivers.bringUpToDate(commands, () => parts.rotation.bundleForWorkers);
      if (this.#isGone) return;
      parts.workers.add(handle);
      const { inventory } = hello;
      const found = await reconcileWorker(parts, { worker: handle, inventory, believed });
      parts.audit.record("worker/connected", { workerId, running: inventory.installed.length, ...found });
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

  #refuse(problem: string): SpaceError {
    this.#parts.audit.record("worker/refused", { workerId: this.#workerId, problem });
    return new SpaceError("certificate/refused", { problem });
  }
}
