// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AdmissionId, RuntimeRecord } from "@space/model";
import {
  httpStatus,
  type LinkStream,
  parseAnswerHead,
  type ResetReason,
  resetReason,
  type StreamHandlers,
} from "@space/wire";
import type { LeasedStream, OpenStreams, StreamLease } from "../sbx-manager/open-streams.ts";
import { admittedHead, admittedText, failureHead } from "./answers.ts";

const badGateway = 502;
/** What the bridge may say as the reason of a reset. */
const resetWord = /^[a-z][a-z/-]{0,63}$/;

export interface ForwardedFacts {
  readonly admission: AdmissionId;
  /** The record by which it was admitted, as read in this turn. */
  readonly record: RuntimeRecord;
  /** Whether it ends by itself soon. */
  readonly isShort: boolean;
}

/** whether this worker may serve at this instant. */
export interface ServingLease {
  readonly held: boolean;
}

/**
 * One admitted operation between its gateway and the bridge: bytes both ways under each side's own flow control, each
 * direction ended apart, until both have ended, one side resets, or its epoch ends. While the worker has no lease,
 * nothing passes: it waits here, in order, as much as the windows of the two streams let come. It is the handler of the gateway's
 * stream; {@link bridgeSide} is the handler of the other.
 */
export class ForwardedOperation implements StreamHandlers, LeasedStream {
  readonly isShort: boolean;
  readonly bridgeSide: StreamHandlers;
  readonly #admission: AdmissionId;
  readonly #gateway: LinkStream;
  readonly #streams: OpenStreams;
  readonly #lease: StreamLease;
  readonly #serving: ServingLease;
  /** What came while the worker had no lease. */
  #parked: (() => void)[] | undefined;
  #bridge: LinkStream | undefined;
  /** Bytes of the gateway's that the bridge has no room for yet, and the other way. */
  #heldFromGateway = 0;
  #heldFromBridge = 0;
  #gatewayEnded = false;
  #bridgeEnded = false;

  /** Registers the stream under the lease of its sandbox's epoch. */
  constructor(facts: ForwardedFacts, gateway: LinkStream, streams: OpenStreams, serving: ServingLease) {
    this.#admission = facts.admission;
    this.#gateway = gateway;
    this.#streams = streams;
    this.#serving = serving;
    this.isShort = facts.isShort;
    this.bridgeSide = new BridgeSide(this);
    this.#lease = streams.register(facts.record, this);
  }

  forwardTo(bridge: LinkStream): void {
    this.#bridge = bridge;
  }

  /** From the gateway. */
  onData(chunk: Buffer): void {
    if (this.#isHeldBack) return this.#park(() => this.onData(chunk));
    if (!this.#mayPass()) return;
    if (this.#bridge === undefined || this.#bridge.send(chunk)) this.#gateway.consumed(chunk.length);
    else this.#heldFromGateway += chunk.length;
  }

  onEnd(): void {
    if (this.#isHeldBack) return this.#park(() => this.onEnd());
    this.#gatewayEnded = true;
    this.#endBridge();
  }

  /** Only a caller who gave up ends what can go on: a lost connection does not. */
  onReset(reason: string): void {
    const given = reason === resetReason.cancelled ? resetReason.cancelled : resetReason.transport;
    this.#bridge?.reset(given);
    this.#leave();
  }

  onDrain(): void {
    const bytes = this.#heldFromBridge;
    this.#heldFromBridge = 0;
    if (bytes > 0) this.#bridge?.consumed(bytes);
    if (this.#bridgeEnded) this.#endGateway();
  }

  answer(head: Buffer): void {
    if (this.#isHeldBack) return this.#park(() => this.answer(head));
    if (!this.#mayPass()) return;
    const text = head.toString("utf8");
    const admitted = admittedText(text, this.#admission);
    if (admitted !== undefined) return this.#gateway.sendHead(admitted, false);
    try {
      const answer = parseAnswerHead(JSON.parse(text));
      if (answer.portClosed === true) this.fail("sandbox/port-closed", badGateway);
      else if (answer.streamLost === true) this.fail("stream/lost", httpStatus.unavailable);
      else this.#gateway.sendHead(admittedHead(answer, this.#admission), false);
    } catch {
      this.cut(resetReason.protocol); // the bridge is ours, but what it relays comes from a guest
      this.#leave();
    }
  }

  /** The worker answers in the guest's place; nothing more is forwarded either way. */
  fail(code: "sandbox/port-closed" | "stream/lost" | "endpoint/unverifiable", status: number): void {
    this.#gateway.sendHead(failureHead(status, code, this.#admission), true);
    this.#bridge?.reset(resetReason.cancelled);
    this.#leave();
  }

  bridgeData(chunk: Buffer): void {
    if (this.#isHeldBack) return this.#park(() => this.bridgeData(chunk));
    if (!this.#mayPass()) return;
    if (this.#gateway.send(chunk)) this.#bridge?.consumed(chunk.length);
    else this.#heldFromBridge += chunk.length;
  }

  bridgeEnd(): void {
    if (this.#isHeldBack) return this.#park(() => this.bridgeEnd());
    this.#bridgeEnded = true;
    this.#endGateway();
  }

  bridgeReset(reason: string): void {
    const isLinkGone = reason.startsWith("link/") || !resetWord.test(reason);
    this.#gateway.reset(isLinkGone ? resetReason.transport : reason);
    this.#leave();
  }

  bridgeDrain(): void {
    const bytes = this.#heldFromGateway;
    this.#heldFromGateway = 0;
    if (bytes > 0) this.#gateway.consumed(bytes);
    if (this.#gatewayEnded) this.#endBridge();
  }

  /** from here on no byte passes in either direction; each leg hears the reason. */
  cut(reason: ResetReason): void {
    this.#parked = undefined;
    this.#gateway.reset(reason);
    this.#bridge?.reset(reason);
  }

  /** in the order in which it came; what comes to be held again waits again. */
  resume(): void {
    const parked = this.#parked ?? [];
    this.#parked = undefined;
    for (const pass of parked) pass();
  }

  /** asked of every piece, of the clock itself: a process that stood still must not deliver what it had in hand. */
  get #isHeldBack(): boolean {
    return this.#parked !== undefined || !this.#serving.held;
  }

  #park(pass: () => void): void {
    this.#parked ??= [];
    this.#parked.push(pass);
  }

  /** asked of every piece. A stream that outlived its epoch ends here, on both legs. */
  #mayPass(): boolean {
    if (this.#lease.holds) return true;
    this.cut(resetReason.epochEnded);
    this.#leave();
    return false;
  }

  /** bytes that wait for room are still under the lease, so an end waits for them. */
  #endGateway(): void {
    if (this.#heldFromBridge > 0 || !this.#mayPass()) return;
    this.#gateway.end();
    this.#leaveIfOver();
  }

  #endBridge(): void {
    if (this.#heldFromGateway > 0 || !this.#mayPass()) return;
    this.#bridge?.end();
    this.#leaveIfOver();
  }

  #leaveIfOver(): void {
    const isIdle = this.#heldFromGateway === 0 && this.#heldFromBridge === 0;
    if (isIdle && this.#gatewayEnded && this.#bridgeEnded) this.#leave();
  }

  #leave(): void {
    this.#parked = undefined;
    this.#streams.leave(this.#lease, this);
  }
}

class BridgeSide implements StreamHandlers {
  readonly #operation: ForwardedOperation;

  constructor(operation: ForwardedOperation) {
    this.#operation = operation;
  }

  onHead(head: Buffer): void {
    this.#operation.answer(head);
  }

  onData(chunk: Buffer): void {
    this.#operation.bridgeData(chunk);
  }

  onEnd(): void {
    this.#operation.bridgeEnd();
  }

  onReset(reason: string): void {
    this.#operation.bridgeReset(reason);
  }

  onDrain(): void {
    this.#operation.bridgeDrain();
  }
}
