// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import {
  type ActivationId,
  type ActivationRecord,
  type AuditSink,
  type Clock,
  carriedPieceBytes,
  type HostControl,
  isSpaceError,
  SpaceError,
} from "@space/model";
import { FrameLink, hostControlOver, type LinkStream, type StreamHandlers } from "@space/wire";
import type { WorkerCounters } from "../counters.ts";
import type { WorkerLimits } from "../limits.ts";
import type { HostConnector } from "../ports.ts";
import { BridgeReports } from "./bridge-reports.ts";
import { eachLimited } from "./each-limited.ts";
import type { Executions } from "./executions.ts";

export interface HostBridgePorts {
  readonly host: HostConnector;
  readonly clock: Clock;
  readonly executions: Executions;
  readonly counters: WorkerCounters;
  readonly audit: AuditSink;
  /** until when this worker may serve; 0 while it may not. */
  readonly deadlineBootMs: () => number;
  /** Told when the bridge has refused a process's endpoint: it is not forwarded to, and never by a weaker check. */
  readonly onRefused: (activation: ActivationRecord, problem: string) => void;
}

/**
 * the one verified connection to this worker's bridge. It is used only once the bridge knows every running
 * activation. When it breaks, its streams are reset and commands fail; the next connection is verified from the start.
 */
export class HostBridge {
  readonly #limits: WorkerLimits;
  readonly #ports: HostBridgePorts;
  readonly #hosted = new Set<ActivationId>();
  readonly #closing = new AbortController();
  readonly #reports: BridgeReports;
  #link: FrameLink | undefined;
  #control: HostControl | undefined;
  #retryMs: number;
  #cancelRetry: () => void = () => undefined;

  constructor(limits: WorkerLimits, ports: HostBridgePorts) {
    this.#limits = limits;
    this.#ports = ports;
    this.#reports = new BridgeReports(ports);
    this.#retryMs = limits.bridgeRetryMs;
  }

  get connected(): boolean {
    return this.#link !== undefined;
  }

  /** Connects, verified, and tells the bridge what runs. Throws `endpoint/mismatch`, `endpoint/unverifiable` or `link/closed`. */
  async connect(): Promise<void> {
    const link: FrameLink = new FrameLink(await this.#socket(), {
      dialled: true,
      onClose: () => this.#lost(link),
    });
    this.#ports.counters.bridgeConnections += 1;
    const control = hostControlOver(link, this.#ports.clock);
    try {
      await control.holdUntil(this.#ports.deadlineBootMs()); // before anything is forwarded
      this.#ports.audit.record("bridge/connected", await this.#agree(control));
    } catch (error) {
      link.destroy(error);
      throw error;
    }
    if (link.closed) throw new SpaceError("link/closed", {});
    this.#link = link;
    this.#control = control;
    this.#retryMs = this.#limits.bridgeRetryMs;
    void this.#reports.follow(control, () => !link.closed);
  }

  /** Opens an operation's stream; undefined when there is no verified connection now: then nothing was forwarded. */
  open(head: string, handlers: StreamHandlers, ended: boolean): LinkStream | undefined {
    return this.#link?.open(head, handlers, ended);
  }

  /** Throws `endpoint/unverifiable` when there is no verified connection now. */
  get control(): HostControl {
    if (this.#control !== undefined) return this.#control;
    throw new SpaceError("endpoint/unverifiable", { problem: "no connection to the bridge" });
  }

  /** One that does not hear it now hears it when it is connected again, and serves no longer than it knows of. */
  async holdUntil(deadlineBootMs: number): Promise<void> {
    try {
      await this.#control?.holdUntil(deadlineBootMs);
    } catch {
      // its connection is gone, or about to be
    }
  }

  /** Throws as {@link control}. */
  requireConnection(): void {
    void this.control;
  }

  /**
   * Has the bridge verify and serve this activation, unless it does so already. `isFirst`: nothing ran in it before.
   * `carried`: what another bridge knew of the guest, which was restored.
   */
  async adopt(
    activation: ActivationRecord,
    { isFirst = false, carried }: { readonly isFirst?: boolean; readonly carried?: Buffer | undefined } = {},
  ): Promise<void> {
    const { id } = activation.identity.activation;
    if (this.#hosted.has(id)) return;
    const { control } = this;
    if (carried !== undefined) await carryTo(control, id, carried);
    await adoptBy(control, activation, isFirst);
    this.#hosted.add(id);
  }

  /** What the bridge knows of a guest that was let go of; undefined when it is another bridge by now, and knows nothing. */
  async carried(id: ActivationId): Promise<Buffer | undefined> {
    const { control } = this;
    const pieces: Uint8Array[] = [];
    try {
      for (let offset = 0; ; ) {
        const { bytes, totalBytes } = await control.carried(id, offset);
        pieces.push(bytes);
        offset += bytes.length;
        if (offset >= totalBytes) return Buffer.concat(pieces);
        if (bytes.length === 0) throw new SpaceError("link/protocol", { problem: "an empty piece" });
      }
    } catch (error) {
      if (isSpaceError(error, "endpoint/unverifiable")) return undefined;
      throw error;
    }
  }

  /** As {@link HostControl.quiesce}. A guest that was let go of has to be adopted anew. */
  async quiesce(id: ActivationId, limitMs: number, letGo: boolean): Promise<void> {
    if (letGo) this.#hosted.delete(id);
    await this.control.quiesce(id, limitMs, letGo);
  }

  /** The process that the bridge knows as `from` goes on as `next`. */
  async rekey(from: ActivationRecord, next: ActivationRecord): Promise<void> {
    const [old, now] = [from.identity.activation.id, next.identity.activation.id];
    await this.adopt(from);
    await this.control.rekey({ from: old, to: now, activationSecret: next.activationSecret });
    this.#hosted.delete(old);
    this.#hosted.add(now);
  }

  /** Never fails: what a bridge does not hear now, the next connection begins with. */
  async release(id: ActivationId): Promise<void> {
    this.#hosted.delete(id);
    try {
      await this.#control?.release(id);
    } catch {
      // The process ends all the same; a new connection releases what does not run any more.
    }
  }

  close(): void {
    this.#closing.abort();
    this.#cancelRetry();
    this.#link?.destroy(undefined);
  }

  async #socket(): Promise<Duplex> {
    const late = new AbortController();
    const cancel = this.#ports.clock.after(this.#limits.bridgeConnectMs, () => late.abort());
    const signal = AbortSignal.any([late.signal, this.#closing.signal]);
    try {
      const socket = await this.#ports.host.connect(signal);
      if (!signal.aborted) return socket;
      socket.destroy();
      throw new SpaceError("endpoint/unverifiable", { problem: "the bridge answered too late" });
    } finally {
      cancel();
    }
  }

  /** Both sides agree on what runs: missing activations are adopted, unknown ones released. */
  async #agree(control: HostControl): Promise<{ readonly known: number; readonly adopted: number }> {
    const known = new Set(await control.list());
    this.#hosted.clear();
    let adopted = 0;
    await eachLimited(this.#ports.executions.all(), this.#limits.adoptionsAtOnce, async (activation) => {
      const { id } = activation.identity.activation;
      if (known.has(id)) this.#hosted.add(id);
      else if (activation.phase === "running" && (await this.#adoptOrRefuse(control, activation)))
        adopted += 1;
    });
    for (const id of known) {
      if (this.#ports.executions.find(id) === undefined) await control.release(id);
    }
    return { known: known.size, adopted };
  }

  async #adoptOrRefuse(control: HostControl, activation: ActivationRecord): Promise<boolean> {
    try {
      await adoptBy(control, activation, false);
      this.#hosted.add(activation.identity.activation.id);
      return true;
    } catch (error) {
      if (!isSpaceError(error) || isSpaceError(error, "link/closed")) throw error;
      this.#ports.onRefused(activation, error.code);
      return false;
    }
  }

  #lost(link: FrameLink): void {
    if (this.#link !== link) return; // it never came into use: `connect` reports it
    this.#link = undefined;
    this.#control = undefined;
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#closing.signal.aborted) return;
    const delayMs = this.#retryMs;
    this.#retryMs = Math.min(this.#retryMs * 2, this.#limits.bridgeRetryMostMs);
    this.#cancelRetry = this.#ports.clock.after(delayMs, () => {
      this.connect().catch(() => this.#retryLater());
    });
  }
}

async function carryTo(control: HostControl, id: ActivationId, carried: Buffer): Promise<void> {
  const totalBytes = carried.length;
  for (let offset = 0; offset < totalBytes; offset += carriedPieceBytes) {
    const bytes = carried.subarray(offset, offset + carriedPieceBytes);
    await control.carry(id, { offset, totalBytes, bytes });
  }
}

function adoptBy(control: HostControl, activation: ActivationRecord, isFirst: boolean): Promise<void> {
  const { identity, evidence, template, variables, activationSecret } = activation;
  const { pid, startTime } = evidence.guest;
  return control.adopt({
    activationId: identity.activation.id,
    sandboxId: identity.sandboxId,
    template,
    socketPath: evidence.socketPath,
    activationSecret,
    guest: { pid, startTime },
    isFirst,
    variables,
  });
}
