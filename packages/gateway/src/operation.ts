// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type AuditSink, type Clock, unreachable } from "@space/model";
import { type AnswerHead, type FrameLink, transportRules } from "@space/wire";
import type { AdmissionIds } from "./admission-ids.ts";
import { Attempt, type AttemptListener, isSocket, type OperationRequest } from "./attempt.ts";
import type { CachedEntry } from "./cached-entry.ts";
import type { MutableCounts } from "./counters.ts";
import type { Refusal } from "./refusal.ts";
import type { BodyListener, RequestBody } from "./request-body.ts";
import type { LookupOutcome, RouteCache } from "./route-cache.ts";
import type { SandboxLoad } from "./sandbox-load.ts";
import type { WorkerLinks } from "./worker-links.ts";

/** The caller's end of an operation. Of `refuse` and `answer` one succeeds, once. */
export interface CallerSide {
  /** The guest's answer begins. False: it cannot be passed on, and `refuse` follows. */
  answer(head: AnswerHead): boolean;
  /** Bytes of the answer. False: the caller is slow, and `onceDrained` tells when there is room again. */
  data(chunk: Buffer): boolean;
  onceDrained(callback: () => void): void;
  /** The answer is complete. */
  end(): void;
  /** The answer broke off: the caller must see that it is not complete. */
  broken(): void;
  /** The gateway's own answer. */
  refuse(refusal: Refusal): void;
}

/** What all operations of a gateway share. */
export interface OperationCore {
  readonly cache: RouteCache;
  readonly links: WorkerLinks;
  readonly load: SandboxLoad;
  readonly admissions: AdmissionIds;
  readonly clock: Clock;
  readonly audit: AuditSink;
  readonly counts: MutableCounts;
  /** Every operation under way. */
  readonly live: Set<Operation>;
  readonly answerWaitMs: number;
}

/** What a caller is told to wait before another try. */
const tryAgain: Refusal = { kind: "try-again", afterMs: 1000 };
/** how long before the end of the authorisation a running operation's caller is checked again. */
const recheckAheadMs = 10_000;

type State = "body" | "route" | "presented" | "answering" | "over";

/**
 * One request on its way: finds the entry, presents it, repairs the route at most once, and passes bytes both
 * ways only as fast as the slower side takes them.
 */
export class Operation implements AttemptListener, BodyListener {
  readonly #request: OperationRequest;
  readonly #body: RequestBody;
  readonly #caller: CallerSide;
  readonly #core: OperationCore;
  #state: State = "body";
  #attempt: Attempt | undefined;
  #repaired = false;
  #retried = false;
  #checking = false;
  #heldBytes = 0;
  #presentedAtMs = 0;
  #authorisedUntilMs = 0;

  constructor(request: OperationRequest, body: RequestBody, caller: CallerSide, core: OperationCore) {
    this.#request = request;
    this.#body = body;
    this.#caller = caller;
    this.#core = core;
  }

  /** Begins, if the sandbox may have one more request. */
  start(): void {
    const { load, live, counts } = this.#core;
    if (!load.enter(this.#request.sandboxId)) {
      this.#state = "over";
      counts.refused += 1;
      return this.#caller.refuse({ kind: "too-many-requests" });
    }
    live.add(this);
    if (isSocket(this.#request.target)) this.bodyReady();
    else this.#body.begin(this);
  }

  /** The caller is gone: the worker is told so, and nothing more happens. */
  abort(): void {
    if (this.#state === "over") return;
    this.#attempt?.cancel();
    this.#finish();
  }

  /** The gateway is closing. */
  close(): void {
    if (this.#state === "over") return;
    this.#attempt?.cancel();
    if (this.#state === "answering") this.cut();
    else this.#refuse(tryAgain);
  }

  /** Called now and then: ends what has waited too long and what has lost its authorisation. */
  sweep(nowMs: number): void {
    if (this.#state !== "presented" && this.#state !== "answering") return;
    if (this.#state === "presented" && nowMs - this.#presentedAtMs >= this.#core.answerWaitMs) {
      this.#attempt?.cancel();
      this.#refuse(tryAgain);
    } else if (nowMs >= this.#authorisedUntilMs - recheckAheadMs) this.#recheck(nowMs);
  }

  bodyReady(): void {
    if (this.#state !== "body") return;
    this.#state = "route";
    const { cache, clock } = this.#core;
    const cached = cache.usable(this.#request.question, clock.monotonicMs());
    if (cached === undefined)
      this.#look(cache.lookUp(this.#request.question), (found) => this.#present(found));
    else this.#present(cached);
  }

  bodyTooLarge(): void {
    if (this.#state === "over") return;
    this.#attempt?.cancel();
    if (this.#state === "answering") this.cut();
    else this.#refuse({ kind: "body-too-large" });
  }

  admitted(head: AnswerHead): void {
    this.#core.counts.admitted += 1;
    // A guest's own 421 is never a signal, and no 421 leaves the gateway: clients would take it for ours.
    const passes = head.status !== 421 && this.#caller.answer(head);
    if (!passes) {
      this.#attempt?.cancel();
      return this.#refuse({ kind: "bad-answer" });
    }
    this.#state = "answering";
    if (head.status === 101) this.#attempt?.flow();
    else if (this.#attempt?.holdsBody === true) this.#body.discard();
    else if (!this.#body.flowing) this.#body.release();
  }

  failed(code: string): void {
    this.#core.counts.admitted += 1;
    switch (code) {
      case "sandbox/port-closed":
        return this.#refuse({ kind: "port-closed" });
      case "sandbox/not-running":
        return this.#refuse({ kind: "not-running" });
      case "input/too-large":
        return this.#refuse({ kind: "body-too-large" });
      default:
        return this.#refuse(tryAgain);
    }
  }

  /** the one repair. */
  refreshRoute(): void {
    const { counts, cache } = this.#core;
    const rejected = this.#attempt?.cached;
    counts.refreshes += 1;
    if (this.#repaired || rejected === undefined) return this.#refuse(tryAgain);
    this.#repaired = true;
    this.#state = "route";
    this.#look(cache.repair(this.#request.question, rejected), (cached) => {
      // the rejected route again is not tried again.
      if (cached.digest === rejected.digest) return this.#refuse(tryAgain);
      counts.repairs += 1;
      this.#present(cached);
    });
  }

  denied(): void {
    const { audit, cache } = this.#core;
    const { sandboxId, question } = this.#request;
    if (this.#attempt !== undefined) {
      audit.record("route/denied", { admission: this.#attempt.admission, sandboxId });
      cache.removeIfStill(question, this.#attempt.cached);
    }
    this.#refuse({ kind: "denied" });
  }

  /** what the table allows is tried once more; anything else might have had its effect. */
  unanswered(problem: string, misbehaved: boolean): void {
    const { counts, audit } = this.#core;
    counts.transportErrors += 1;
    if (this.#attempt === undefined) return;
    const { cached, admission } = this.#attempt;
    const { workerId } = cached.entry.route.endpoint;
    if (misbehaved) audit.record("worker/misbehaved", { admission, workerId, problem });
    if (this.#retried || !mayRepeat(this.#request) || this.#body.flowing) return this.#refuse(tryAgain);
    this.#retried = true;
    this.#state = "route";
    this.#present(cached);
  }

  data(chunk: Buffer): void {
    if (this.#caller.data(chunk)) {
      this.#attempt?.consumed(chunk.length);
      return;
    }
    if (this.#heldBytes === 0) this.#caller.onceDrained(() => this.#callerDrained());
    this.#heldBytes += chunk.length;
  }

  end(): void {
    this.#caller.end();
    // A socket's other direction goes on until the caller's side is closed.
    if (isSocket(this.#request.target)) return;
    // What a caller still uploads after its answer is wanted by nobody, and must not look complete to the guest.
    if (!this.#body.ended || this.#attempt?.holdsBody === true) this.#attempt?.cancel();
    this.#finish();
  }

  cut(): void {
    this.#finish();
    this.#caller.broken();
  }

  /** The caller took what it had been sent. */
  #callerDrained(): void {
    const bytes = this.#heldBytes;
    this.#heldBytes = 0;
    this.#attempt?.consumed(bytes);
  }

  #look(pending: Promise<LookupOutcome>, use: (cached: CachedEntry) => void): void {
    // The cache's promises never reject.
    void pending.then((outcome) => {
      if (this.#state === "route") this.#found(outcome, use);
    });
  }

  #found(outcome: LookupOutcome, use: (cached: CachedEntry) => void): void {
    switch (outcome.kind) {
      case "entry":
        return use(outcome.cached);
      case "not-found":
      case "not-running":
        return this.#refuse({ kind: "not-running" });
      case "unauthenticated":
        return this.#refuse({ kind: "unauthenticated", problem: outcome.problem });
      case "unavailable":
        return this.#refuse(tryAgain);
      default:
        return unreachable(outcome);
    }
  }

  #present(cached: CachedEntry): void {
    const { links } = this.#core;
    const { endpoint } = cached.entry.route;
    const link = links.current(endpoint);
    if (link !== undefined) return this.#open(link, cached);
    links.link(endpoint).then(
      (dialled) => {
        if (this.#state === "route") this.#open(dialled, cached);
      },
      () => {
        if (this.#state === "route") this.#unreachable(cached);
      },
    );
  }

  #open(link: FrameLink, cached: CachedEntry): void {
    const { admissions, clock } = this.#core;
    this.#state = "presented";
    this.#presentedAtMs = clock.monotonicMs();
    this.#authorisedUntilMs = cached.authorisedUntilMs;
    const admission = admissions.next();
    this.#attempt = new Attempt(this.#request, this.#body, this, { link, cached, admission });
  }

  /**
   * The worker cannot be reached. The entry is dropped, so that the next request asks anew where the sandbox is; a read
   * does so itself, in place of its repair.
   */
  #unreachable(cached: CachedEntry): void {
    const { cache, counts } = this.#core;
    const { question } = this.#request;
    counts.transportErrors += 1;
    cache.removeIfStill(question, cached);
    if (!mayRepeat(this.#request) || this.#repaired) return this.#refuse(tryAgain);
    this.#repaired = true;
    this.#look(cache.lookUp(question), (found) => {
      if (found.digest === cached.digest) this.#refuse(tryAgain);
      else this.#present(found);
    });
  }

  /** the caller of a long operation is checked anew, by its own credential. */
  #recheck(nowMs: number): void {
    if (this.#checking) return;
    const { cache, audit } = this.#core;
    const { question, sandboxId } = this.#request;
    const cached = cache.usable(question, nowMs);
    if (cached !== undefined && cached.authorisedUntilMs > this.#authorisedUntilMs) {
      this.#authorisedUntilMs = cached.authorisedUntilMs;
      return;
    }
    if (cached !== undefined && nowMs < this.#authorisedUntilMs) return;
    this.#checking = true;
    void cache.lookUp(question).then((outcome) => {
      this.#checking = false;
      if (outcome.kind === "entry") this.#authorisedUntilMs = outcome.cached.authorisedUntilMs;
      else if (this.#state !== "over" && hasLost(outcome)) {
        audit.record("caller/revoked", { sandboxId });
        this.#attempt?.cancel();
        if (this.#state === "answering") this.cut();
        else this.#refuse({ kind: "unauthenticated", problem: "wrong" });
      }
    });
  }

  #refuse(refusal: Refusal): void {
    this.#core.counts.refused += 1;
    this.#finish();
    this.#caller.refuse(refusal);
  }

  #finish(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#core.live.delete(this);
    this.#core.load.leave(this.#request.sandboxId);
  }
}

/** whether a request whose answer never came may be presented again. */
function mayRepeat(request: OperationRequest): boolean {
  return transportRules[request.class].unanswered === "again";
}

/**
 * Whether the check says that the caller has no access any more. A signature bounds when a transfer may begin, not how
 * long it takes; and while nobody can be asked, the worker's own lease bounds the stream.
 */
function hasLost(outcome: Exclude<LookupOutcome, { readonly kind: "entry" }>): boolean {
  switch (outcome.kind) {
    case "not-found":
      return true;
    case "unauthenticated":
      return outcome.problem !== "signature-expired";
    case "not-running":
    case "unavailable":
      return false;
    default:
      return unreachable(outcome);
  }
}
