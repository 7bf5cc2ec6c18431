// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type AdmissionId, type SandboxId, unreachable } from "@space/model";
import {
  type AnswerHead,
  type FrameLink,
  type LinkStream,
  type OperationClass,
  type OperationHead,
  type OperationTarget,
  type ResetReason,
  resetReason,
  type StreamHandlers,
} from "@space/wire";
import type { CachedEntry } from "./cached-entry.ts";
import type { RequestBody } from "./request-body.ts";
import type { RouteQuestion } from "./route-cache.ts";
import { readWorkerAnswer } from "./worker-answer.ts";

/** One request to a sandbox, as it is presented to a worker. */
export interface OperationRequest {
  readonly sandboxId: SandboxId;
  readonly target: OperationTarget;
  readonly class: OperationClass;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly question: RouteQuestion;
}

/** What an attempt comes to. Of the first five one is called, once; the last three only after `admitted`. */
export interface AttemptListener {
  admitted(head: AnswerHead): void;
  /** Admitted, but answered by worker or bridge with a `SpaceError` code. */
  failed(code: string): void;
  refreshRoute(): void;
  denied(): void;
  /** no recognised answer came. `misbehaved`: because the worker sent something else. */
  unanswered(problem: string, misbehaved: boolean): void;
  data(chunk: Buffer): void;
  end(): void;
  /** The answer broke off; `reason` is the word of who broke it. */
  cut(reason: string): void;
}

type State = "waiting" | "answering" | "over";

/** One presentation of a request with one entry's capability: one stream, one admission id. R-27: each is made anew. */
export class Attempt implements StreamHandlers {
  readonly cached: CachedEntry;
  readonly admission: AdmissionId;
  readonly #body: RequestBody;
  readonly #listener: AttemptListener;
  readonly #stream: LinkStream;
  #state: State = "waiting";
  #holdsBody: boolean;

  constructor(
    request: OperationRequest,
    body: RequestBody,
    listener: AttemptListener,
    via: { readonly link: FrameLink; readonly cached: CachedEntry; readonly admission: AdmissionId },
  ) {
    this.cached = via.cached;
    this.admission = via.admission;
    this.#body = body;
    this.#listener = listener;
    this.#holdsBody = body.long && !isSocket(request.target);
    this.#stream = via.link.open(headText(request, via, this.#holdsBody), this, body.empty);
    if (!body.long && !body.empty) body.sendWhole(this.#stream);
  }

  /** Whether the body waits for the worker's word. */
  get holdsBody(): boolean {
    return this.#holdsBody;
  }

  /** Ends both directions at the worker; nothing is told any more. */
  cancel(reason: ResetReason = resetReason.cancelled): void {
    this.#state = "over";
    this.#stream.reset(reason);
  }

  consumed(bytes: number): void {
    this.#stream.consumed(bytes);
  }

  /** Lets the body flow: to a socket once it is accepted. */
  flow(): void {
    this.#holdsBody = false;
    this.#body.flow(this.#stream);
  }

  onHead(bytes: Buffer): void {
    if (this.#state !== "waiting") return this.#breach("a second head");
    const answer = readWorkerAnswer(bytes, this.admission, this.cached.digest);
    if (answer.kind === "unrecognised") return this.#breach(answer.problem);
    if (answer.kind === "admitted") {
      this.#state = "answering";
      return this.#listener.admitted(answer.head);
    }
    this.cancel();
    switch (answer.kind) {
      case "failed":
        return this.#listener.failed(answer.code);
      case "refresh-route":
        return this.#listener.refreshRoute();
      case "deny":
        return this.#listener.denied();
      default:
        return unreachable(answer);
    }
  }

  onProceed(admission: string): void {
    const due = this.#state === "waiting" && this.#holdsBody && admission === this.admission;
    if (due) this.flow();
    else this.#breach("proceed out of place");
  }

  onData(chunk: Buffer): void {
    if (this.#state === "answering") this.#listener.data(chunk);
    else if (this.#state === "waiting") this.#breach("bytes before the head");
  }

  onEnd(): void {
    if (this.#state === "answering") this.#listener.end();
    else if (this.#state === "waiting") this.#breach("ended without a head");
  }

  onReset(reason: string): void {
    const was = this.#state;
    this.#state = "over";
    if (was === "waiting") this.#listener.unanswered(reason, false);
    else if (was === "answering") this.#listener.cut(reason);
  }

  onDrain(): void {
    this.#body.drained();
  }

  /** The worker broke the rules of the exchange. */
  #breach(problem: string): void {
    const was = this.#state;
    this.cancel(resetReason.protocol);
    if (was === "waiting") this.#listener.unanswered(problem, true);
    else if (was === "answering") this.#listener.cut(resetReason.protocol);
  }
}

/** A WebSocket's bytes begin after its handshake is answered: there is no body to wait for. */
export function isSocket(target: OperationTarget): boolean {
  return target.purpose === "service-port" && target.protocol === "websocket";
}

function headText(
  request: OperationRequest,
  { cached, admission }: { readonly cached: CachedEntry; readonly admission: AdmissionId },
  awaitAdmission: boolean,
): string {
  const { sandboxId: sandbox, target, method, path, headers } = request;
  const { capability } = cached.entry;
  const head: OperationHead = { admission, sandbox, capability, target, method, path, headers };
  return JSON.stringify(awaitAdmission ? { ...head, awaitAdmission } : head);
}
