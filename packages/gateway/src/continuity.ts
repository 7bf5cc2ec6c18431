// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AnswerHead,
  type Continuation,
  continuationOf,
  headerValue,
  positionHeaders,
  resetReason,
} from "@space/wire";
import type { OperationRequest } from "./attempt.ts";
import { type ConnectCodec, EnvelopeTracker, keepaliveMessage, streamCodec } from "./connect-envelopes.ts";
import { RequestBody, type RequestBodyPorts } from "./request-body.ts";
import type { RouteQuestion } from "./route-cache.ts";
import { agentQuestion } from "./sandbox-request.ts";

/** The caller's own header: names one start, so that it can be asked whether it ran. */
const idempotencyHeader = "idempotency-key";
/** Words with which a stream ends that was cut for the path's sake; any other means that it is over in the guest too. */
const cutWords: ReadonlySet<string> = new Set([
  resetReason.epochEnded,
  resetReason.transport,
  resetReason.leaseEnded,
  resetReason.closing,
  "link/closed",
]);
const firstPauseMs = 50;
const longestPauseMs = 1000;
/** A continuation that has held for this long, or passed a byte, is a success: what comes then is another cut. */
const steadyMs = 5000;

/** One presentation of an exchange: what to ask for, and the body that goes with it. */
export interface Presentation {
  readonly request: OperationRequest;
  readonly body: RequestBody;
}

/** Whether this word ends a stream's connection alone, and not the stream. */
export function isCut(reason: string): boolean {
  return cutWords.has(reason);
}

/** Whether the worker says with it that the way is being changed, so that the end of that is worth waiting for. */
export function isChange(reason: string): boolean {
  const { epochEnded, leaseEnded, closing } = resetReason;
  return reason === epochEnded || reason === leaseEnded || reason === closing;
}

/**
 * how one exchange goes on over other connections: its name, how far it has come, and when to try again. It holds
 * no capability and decides no access: each continuation is presented, and admitted, as a request of its own.
 */
export class Continuity {
  readonly #how: Continuation;
  readonly #key: string;
  readonly #original: OperationRequest;
  readonly #body: RequestBody;
  readonly #ports: RequestBodyPorts;
  readonly #envelopes = new EnvelopeTracker();
  #codec: ConnectCodec | undefined;
  #begun = false;
  #cutAtMs: number | undefined;
  #resumedAtMs: number | undefined;
  #resumedBytes = 0;
  #lastSentMs = 0;
  #tries = 0;
  #afresh = false;
  #presented = false;

  private constructor(
    how: Continuation,
    key: string,
    { request, body }: Presentation,
    ports: RequestBodyPorts,
  ) {
    this.#how = how;
    this.#key = key;
    this.#original = request;
    this.#body = body;
    this.#ports = ports;
  }

  /** Undefined: a cut ends this operation. `newKey` makes an unguessable name. */
  static of(
    presentation: Presentation,
    newKey: () => string,
    ports: RequestBodyPorts,
  ): Continuity | undefined {
    const { target, method, path } = presentation.request;
    const how = target.purpose === "control" ? continuationOf(method, path) : undefined;
    if (how === undefined) return undefined;
    if (how.kind !== "answer") presentation.body.retain();
    return new Continuity(how, newKey(), presentation, ports);
  }

  /** Whether it has been cut and not been admitted since. */
  get isCut(): boolean {
    return this.#cutAtMs !== undefined && this.#resumedAtMs === undefined;
  }

  /**
   * Whether a bridge may keep an answer under its name for somebody who comes back. Of input it keeps none that anybody
   * could wait for.
   */
  get isKnown(): boolean {
    return this.isCut && this.#presented && this.#how.kind === "answer";
  }

  /** what a continuation needs, as an operation of its own. */
  get question(): RouteQuestion {
    return agentQuestion(this.#original.question, this.#how.path);
  }

  /** Whether the message that ends the stream has passed: only the connection's end is missing. */
  get complete(): boolean {
    return this.#envelopes.ended;
  }

  /** Whether a message of the gateway's may be put in now. */
  get between(): boolean {
    return this.#codec !== undefined && this.#envelopes.between;
  }

  /** The first presentation, under its name. */
  first(): Presentation {
    return this.#whole(undefined);
  }

  /**
   * The bridge does not know its name: nothing of it ran there. True: it may be presented as if for the first time,
   * because that changes nothing, and it was not before.
   */
  startAfresh(): boolean {
    const { class: kind } = this.#original;
    const may = !this.#begun && !this.#afresh && (kind === "attach" || kind === "watch");
    this.#afresh = true;
    return may;
  }

  /** Whether what the caller has begun to get goes on after a cut. */
  get continues(): boolean {
    return this.#codec !== undefined && this.#how.kind !== "repeat";
  }

  /** The answer's head goes to the caller. */
  began({ status, headers }: AnswerHead, nowMs: number): void {
    this.#begun = true;
    this.#lastSentMs = nowMs;
    this.#codec = streamCodec(status, headers);
  }

  /** These bytes go to the caller. */
  passed(chunk: Buffer): void {
    this.#envelopes.push(chunk);
  }

  /** How long to wait before the next try to go on; undefined when it has been cut for `limitMs`. */
  nextTry(nowMs: number, limitMs: number): number | undefined {
    if (this.#wasSteady(nowMs)) {
      this.#cutAtMs = nowMs;
      this.#tries = 0;
    }
    this.#resumedAtMs = undefined;
    this.#cutAtMs ??= nowMs;
    if (this.#cutAtMs === nowMs) this.#lastSentMs = nowMs;
    if (nowMs - this.#cutAtMs >= limitMs) return undefined;
    const pauseMs = this.#tries === 0 ? 0 : Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#tries - 1));
    this.#tries += 1;
    return pauseMs;
  }

  /** It is on its way to a worker: from now on nobody here knows whether it had its effect. */
  presented(): void {
    this.#presented = true;
  }

  /** It was admitted again. */
  resumed(nowMs: number): void {
    this.#resumedAtMs = nowMs;
    this.#resumedBytes = this.#envelopes.passedBytes;
  }

  /** What to present next; undefined when too much of the request's body is gone to send it again. */
  next(): Presentation | undefined {
    switch (this.#how.kind) {
      case "answer":
        return this.#begun || !this.#mayStartAgain() ? this.#attach() : this.#whole(0);
      case "both":
        return { request: this.#continued(this.#body.rewind()), body: this.#body };
      case "repeat":
        return this.#body.rewind() === 0 ? this.#whole(this.#presented ? 0 : undefined) : undefined;
    }
  }

  /** What takes the answer up where it stands, and begins nothing: for whoever means to give it up. */
  takenUp(): Presentation {
    return this.#attach();
  }

  /** The keep-alive that is due while it waits, if any. */
  keepalive(nowMs: number, everyMs: number): Buffer | undefined {
    if (!this.between || this.#codec === undefined || nowMs - this.#lastSentMs < everyMs) return undefined;
    this.#lastSentMs = nowMs;
    return keepaliveMessage(this.#original.class === "watch" ? "watch" : "process", this.#codec);
  }

  /** with a key of the caller's a start may be presented again: the bridge answers for it, and never runs it twice. */
  #mayStartAgain(): boolean {
    const { class: kind, headers } = this.#original;
    return kind === "start" && headerValue(headers, idempotencyHeader) !== undefined && !this.#body.flowing;
  }

  #whole(answerOffset: number | undefined): Presentation {
    const position = positionHeaders({
      key: this.#key,
      ...(answerOffset === undefined ? {} : { answerOffset }),
    });
    return { request: withPosition(this.#original, position), body: this.#body };
  }

  #attach(): Presentation {
    return { request: this.#continued(undefined), body: new RequestBody(undefined, this.#ports) };
  }

  #continued(bodyOffset: number | undefined): OperationRequest {
    const { path } = this.#how;
    const { headers } = this.#original;
    const position = positionHeaders({
      key: this.#key,
      answerOffset: this.#envelopes.passedBytes,
      ...(bodyOffset === undefined ? {} : { bodyOffset }),
    });
    return {
      ...this.#original,
      path,
      headers: [...withoutLength(headers), ...position],
      question: this.question,
    };
  }

  #wasSteady(nowMs: number): boolean {
    if (this.#resumedAtMs === undefined) return false;
    return this.#envelopes.passedBytes > this.#resumedBytes || nowMs - this.#resumedAtMs >= steadyMs;
  }
}

function withPosition(request: OperationRequest, position: readonly string[]): OperationRequest {
  return { ...request, headers: [...request.headers, ...position] };
}

/** What speaks of a body that is not sent again whole. */
function withoutLength(headers: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2)
    if (headers[at] !== "content-length") kept.push(headers[at] ?? "", headers[at + 1] ?? "");
  return kept;
}
