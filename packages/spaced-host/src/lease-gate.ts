// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type BootClock, fencedLimitMs } from "@space/model";
import { type LinkStream, resetReason, type StreamHandlers } from "@space/wire";
import type { BridgeAudit } from "./bridge-events.ts";

/**
 * until when this worker may serve, held by the bridge itself: a daemon that stood still must not reach a guest, nor
 * a guest it, with what was under way. Until a daemon has said a deadline nothing is held: no daemon that was verified
 * forwards before it has.
 */
export class LeaseGate {
  readonly #clock: BootClock;
  readonly #audit: BridgeAudit;
  #isFenced = false;
  #deadlineMs = Number.POSITIVE_INFINITY;
  readonly #streams = new Set<GatedStream>();
  #cancelEnd: () => void = () => undefined;

  constructor(clock: BootClock, audit: BridgeAudit) {
    this.#clock = clock;
    this.#audit = audit;
  }

  /** Asked of every piece, of the clock itself. */
  get isOpen(): boolean {
    return this.#clock.bootMs() < this.#deadlineMs;
  }

  /** A later moment lets what was held pass, in order; an earlier one than the present changes nothing. */
  holdUntil(deadlineBootMs: number): void {
    const isFirst = this.#deadlineMs === Number.POSITIVE_INFINITY;
    if (!isFirst && deadlineBootMs <= this.#deadlineMs) return;
    this.#deadlineMs = deadlineBootMs;
    this.#cancelEnd();
    const leftMs = Math.max(0, deadlineBootMs - this.#clock.bootMs());
    this.#cancelEnd = this.#clock.after(leftMs, () => this.#fence());
    if (!this.isOpen) return;
    if (this.#isFenced) this.#audit.record("bridge/fence-lifted", {});
    this.#isFenced = false;
    for (const stream of [...this.#streams]) stream.pass();
  }

  enter(stream: GatedStream): void {
    this.#streams.add(stream);
  }

  leave(stream: GatedStream): void {
    this.#streams.delete(stream);
  }

  close(): void {
    this.#cancelEnd();
  }

  /** For the log alone: what may pass is asked of the clock, whenever this is run. */
  #fence(): void {
    if (this.isOpen) return;
    this.#isFenced = true;
    this.#audit.record("bridge/fenced", {});
    const heldMs = this.#clock.bootMs() - this.#deadlineMs;
    this.#cancelEnd = this.#clock.after(Math.max(0, fencedLimitMs - heldMs), () => this.#giveUp());
  }

  #giveUp(): void {
    if (this.isOpen) return;
    const held = [...this.#streams];
    this.#audit.record("bridge/fence-given-up", { cutStreams: held.length });
    for (const stream of held) stream.fail(resetReason.leaseEnded);
  }
}

/** What an operation does with its stream. */
export type OperationStream = Pick<LinkStream, "send" | "sendHead" | "end" | "reset" | "consumed" | "over">;

/**
 * One operation's stream behind the gate, in both directions: what comes while it is shut waits, in order, as much as the
 * stream's window lets come. Ends by a reset of either side pass at once.
 */
export class GatedStream implements OperationStream, StreamHandlers {
  readonly #gate: LeaseGate;
  readonly #stream: LinkStream;
  #handlers: StreamHandlers | undefined;
  #held: (() => void)[] = [];

  constructor(gate: LeaseGate, stream: LinkStream) {
    this.#gate = gate;
    this.#stream = stream;
  }

  /** Who is told what comes. */
  handle(handlers: StreamHandlers): this {
    this.#handlers = handlers;
    if (!this.over) this.#gate.enter(this);
    return this;
  }

  get over(): boolean {
    return this.#stream.over;
  }

  send(chunk: Buffer): boolean {
    if (this.#mayPass) return this.#stream.send(chunk);
    this.#held.push(() => void this.#stream.send(chunk));
    return false; // the room that is there again is told when it has passed
  }

  sendHead(head: string, end: boolean): void {
    if (!this.#mayPass) return void this.#held.push(() => this.#stream.sendHead(head, end));
    this.#stream.sendHead(head, end);
    this.#leaveIfOver();
  }

  end(): void {
    if (!this.#mayPass) return void this.#held.push(() => this.#stream.end());
    this.#stream.end();
    this.#leaveIfOver();
  }

  reset(reason: string): void {
    this.#leave();
    this.#stream.reset(reason);
  }

  consumed(bytes: number): void {
    this.#stream.consumed(bytes);
  }

  onData(chunk: Buffer): void {
    if (!this.#mayPass) return void this.#held.push(() => this.#handlers?.onData(chunk));
    this.#handlers?.onData(chunk);
    this.#leaveIfOver();
  }

  onEnd(): void {
    if (!this.#mayPass) return void this.#held.push(() => this.#handlers?.onEnd());
    this.#handlers?.onEnd();
    this.#leaveIfOver();
  }

  onReset(reason: string): void {
    this.#leave();
    this.#handlers?.onReset(reason);
  }

  onDrain(): void {
    if (this.#mayPass) this.#handlers?.onDrain?.();
  }

  /** For the gate: it is open again. */
  pass(): void {
    const held = this.#held;
    this.#held = [];
    for (const pass of held) {
      if (this.#mayPass) pass();
      else this.#held.push(pass);
    }
    this.#leaveIfOver();
    if (held.length > 0 && this.#mayPass) this.#handlers?.onDrain?.();
  }

  /** For the gate: it stayed shut for too long. */
  fail(reason: string): void {
    if (this.over) return;
    this.reset(reason);
    this.#handlers?.onReset(reason);
  }

  get #mayPass(): boolean {
    return this.#held.length === 0 && this.#gate.isOpen;
  }

  #leaveIfOver(): void {
    if (this.over) this.#leave();
  }

  #leave(): void {
    this.#held = [];
    this.#gate.leave(this);
  }
}
