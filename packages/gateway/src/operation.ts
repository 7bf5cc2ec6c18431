// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { unreachable } from "@space/model";
import type { AnswerHead, FrameLink } from "@space/wire";
import { Attempt, type AttemptListener, isSocket, type OperationRequest } from "./attempt.ts";
import type { CachedEntry } from "./cached-entry.ts";
import type { CallerSide } from "./caller-side.ts";
import { Continuity, isChange, isCut, type Presentation } from "./continuity.ts";
import { Farewell } from "./farewell.ts";
import type { LiveOperation, OperationCore } from "./operation-core.ts";
import { afterDenial, changesNothing, endingOf, isInput, mayRepeat, tryAgain } from "./operation-rules.ts";
import type { Refusal } from "./refusal.ts";
import type { BodyListener, RequestBody } from "./request-body.ts";
import type { LookupOutcome } from "./route-cache.ts";
import { type AuthorisationEnd, RunningAuthorisation } from "./running-authorisation.ts";

const unknownOutcome: Refusal = { kind: "outcome-unknown", afterMs: 1000 };

/** `held`: cut, and waiting for the next try to go on. */
type State = "body" | "route" | "presented" | "answering" | "held" | "over";

/**
 * One request on its way: finds the entry, presents it, repairs the route at most once, passes bytes both ways
 * only as fast as the slower side takes them, and goes on with what may go on when it is cut.
 */
export class Operation implements AttemptListener, BodyListener, LiveOperation {
  readonly #request: OperationRequest;
  readonly #body: RequestBody;
  readonly #caller: CallerSide;
  readonly #core: OperationCore;
  #state: State = "body";
  readonly #continuity: Continuity | undefined;
  /** What is presented: the request, or the continuation of its answer. */
  #now: Presentation;
  #attempt: Attempt | undefined;
  #cancelPause: (() => void) | undefined;
  readonly #authorisation: RunningAuthorisation;
  /** Whether the caller has the head of an answer. */
  #began = false;
  #repaired = false;
  #retried = false;
  #renewed = false;
  #heldBytes = 0;
  #presentedAtMs = 0;

  constructor(request: OperationRequest, body: RequestBody, caller: CallerSide, core: OperationCore) {
    this.#request = request;
    this.#body = body;
    this.#caller = caller;
    this.#core = core;
    const { admissions, limits, clock } = core;
    this.#authorisation = new RunningAuthorisation(core, (end) => this.#unauthorised(end));
    this.#continuity = Continuity.of({ request, body }, () => admissions.next(), { limits, clock });
    this.#now = this.#continuity?.first() ?? { request, body };
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

  /** The caller is gone: the worker is told so, as soon as there is one to tell, and nothing more happens. */
  abort(): void {
    if (this.#state === "over") return;
    this.#attempt?.cancel();
    this.#finish();
    if (this.#continuity !== undefined) Farewell.say(this.#continuity, this.#core);
  }

  close(): void {
    if (this.#state === "over") return;
    this.#attempt?.cancel();
    if (this.#began) this.#breakOff(true);
    else this.#refuse(tryAgain);
  }

  sweep(nowMs: number): void {
    if (this.#state !== "presented" && this.#state !== "answering") return;
    if (this.#state === "presented" && nowMs - this.#presentedAtMs >= this.#core.limits.answerWaitMs) {
      this.#attempt?.cancel();
      this.#later();
    } else this.#authorisation.sweep(this.#now.request.question, nowMs);
  }

  bodyReady(): void {
    if (this.#state === "body") this.#seek();
  }

  /** Finds the entry and presents it. */
  #seek(): void {
    this.#state = "route";
    const { cache, clock } = this.#core;
    const { question } = this.#now.request;
    const cached = cache.usable(question, clock.bootMs());
    if (cached === undefined) this.#look(cache.lookUp(question), (found) => this.#present(found));
    else this.#present(cached);
  }

  bodyTooLarge(): void {
    if (this.#state === "over") return;
    this.#attempt?.cancel();
    this.#refuse({ kind: "body-too-large" });
  }

  admitted(head: AnswerHead): void {
    this.#core.counts.admitted += 1;
    if (!this.#passHead(head)) {
      this.#attempt?.cancel();
      return this.#refuse({ kind: "bad-answer" });
    }
    this.#state = "answering";
    if (head.status === 101) this.#attempt?.flow();
    else if (this.#attempt?.holdsBody === true) this.#body.discard();
    else if (!this.#body.flowing) this.#body.release();
  }

  /** The head of an answer goes to the caller, once: that of a continuation has nothing new for him. */
  #passHead(head: AnswerHead): boolean {
    const continuity = this.#continuity;
    const nowMs = this.#core.clock.monotonicMs();
    if (continuity?.isCut === true) {
      continuity.resumed(nowMs);
      this.#core.counts.continued += 1;
      if (this.#began) return head.status === 200;
    }
    // A guest's own 421 is never a signal, and no 421 leaves the gateway: clients would take it for ours.
    if (head.status === 421 || !this.#caller.answer(head)) return false;
    this.#began = true;
    continuity?.began(head, nowMs);
    return true;
  }

  failed(code: string): void {
    this.#core.counts.admitted += 1;
    if (code === "stream/lost") return this.#lost();
    if (this.#began) return this.#later();
    switch (code) {
      case "sandbox/port-closed":
        return this.#refuse({ kind: "port-closed" });
      case "sandbox/not-running":
        return this.#refuse({ kind: "not-running" });
      case "input/too-large":
        return this.#refuse({ kind: "body-too-large" });
      default:
        return this.#later();
    }
  }

  /** the one repair. */
  refreshRoute(): void {
    const { counts, cache } = this.#core;
    const rejected = this.#attempt?.cached;
    counts.refreshes += 1;
    if (this.#repaired || rejected === undefined) return this.#later();
    this.#repaired = true;
    this.#state = "route";
    this.#look(cache.repair(this.#now.request.question, rejected), (cached) => {
      // the rejected route again is not tried again.
      if (cached.digest === rejected.digest) return this.#later();
      counts.repairs += 1;
      this.#present(cached);
    });
  }

  /** it is not presented again; its caller is told what his own check says now. */
  denied(): void {
    const { audit, cache } = this.#core;
    const { sandboxId, question } = this.#now.request;
    if (this.#attempt === undefined) return this.#refuse({ kind: "denied" });
    const { admission, cached } = this.#attempt;
    audit.record("route/denied", { admission, sandboxId });
    cache.removeIfStill(question, cached);
    this.#state = "route";
    void cache.lookUp(question).then((now) => {
      if (this.#state === "route") this.#refuse(afterDenial(cached.kid, now));
    });
  }

  /** what the table allows is tried once more; anything else might have had its effect. */
  unanswered(problem: string, misbehaved: boolean): void {
    const { counts, audit } = this.#core;
    counts.transportErrors += 1;
    if (this.#attempt === undefined) return;
    const { cached, admission } = this.#attempt;
    const { workerId } = cached.entry.route.endpoint;
    if (misbehaved) audit.record("worker/misbehaved", { admission, workerId, problem });
    if (this.#goesOnUnanswered(problem)) return;
    if (this.#retried || !mayRepeat(this.#request) || this.#now.body.flowing)
      return this.#refuse(changesNothing(this.#request) ? tryAgain : unknownOutcome);
    this.#retried = true;
    this.#state = "route";
    this.#present(cached);
  }

  /**
   * what has a name is asked for by it. When the worker says that the epoch has ended, the way is being changed,
   * and it waits for the end of that; when the connection broke, it is asked for once.
   */
  #goesOnUnanswered(problem: string): boolean {
    const continuity = this.#continuity;
    if (continuity === undefined || !isCut(problem)) return false;
    if (!isChange(problem) && !this.#began) {
      if (this.#retried) return false;
      this.#retried = true;
    }
    return this.#goOn();
  }

  data(chunk: Buffer): void {
    this.#continuity?.passed(chunk);
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

  cut(reason: string): void {
    const continuity = this.#continuity;
    if (!isCut(reason) || continuity?.continues !== true) return this.#breakOff(isCut(reason));
    if (continuity.complete) {
      this.#finish();
      this.#caller.end();
    } else if (!this.#goOn()) this.#refuse(tryAgain);
  }

  #breakOff(restarts: boolean): void {
    this.#finish();
    this.#caller.broken(restarts);
  }

  /** tries to go on, now or after a pause; its caller sees that it lives. False: it cannot, or has waited too long. */
  #goOn(): boolean {
    const { clock, limits } = this.#core;
    const nowMs = clock.monotonicMs();
    const limitMs = isInput(this.#request) ? limits.heldInputMs : limits.heldStreamMs;
    const pauseMs = this.#continuity?.nextTry(nowMs, limitMs);
    const next = pauseMs === undefined ? undefined : this.#continuity?.next();
    if (pauseMs === undefined || next === undefined) return false;
    this.#now = next;
    this.#state = "held";
    this.#repaired = false;
    this.#renewed = false;
    const keepalive = this.#continuity?.keepalive(nowMs, limits.heldKeepaliveMs);
    if (keepalive !== undefined) this.#caller.data(keepalive);
    if (pauseMs === 0) this.#seek();
    else this.#cancelPause = clock.after(pauseMs, () => this.#seek());
    return true;
  }

  /** Nothing happened, and another time it may: what is cut waits for that, anything else is told so. */
  #later(): void {
    if (this.#continuity?.isCut === true && this.#goOn()) return;
    this.#refuse(tryAgain);
  }

  /** the bridge cannot go on where the gateway stands, or does not know of it. */
  #lost(): void {
    if (this.#continuity?.startAfresh() !== true) return this.#refuse(unknownOutcome);
    this.#now = this.#continuity.first();
    this.#seek();
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
      case "not-running":
        if (this.#continuity?.isCut === true) return this.#later();
        if (outcome.wakeable === true)
          return this.#look(this.#core.cache.wake(this.#now.request.question), use);
        if (isInput(this.#request) && this.#goOn()) return;
        return this.#refuse({ kind: "not-running" });
      case "not-found":
        return this.#refuse({ kind: "not-running" });
      case "unauthenticated":
        return this.#refuse({ kind: "unauthenticated", problem: outcome.problem });
      case "unavailable":
        return this.#later();
      default:
        return unreachable(outcome);
    }
  }

  #present(cached: CachedEntry): void {
    const { links, cache, clock } = this.#core;
    if (!cache.mayPresent(cached, clock.bootMs())) return this.#renew();
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

  /** certificate, key or authorisation ended while this waited: another entry is presented, or none. */
  #renew(): void {
    if (this.#renewed) return this.#later();
    this.#renewed = true;
    this.#seek();
  }

  #open(link: FrameLink, cached: CachedEntry): void {
    const { admissions, clock, cache } = this.#core;
    const nowMs = clock.bootMs();
    if (!cache.mayPresent(cached, nowMs)) return this.#renew();
    this.#state = "presented";
    this.#presentedAtMs = nowMs;
    this.#authorisation.granted(cached);
    const admission = admissions.next();
    const { request, body } = this.#now;
    this.#continuity?.presented();
    this.#heldBytes = 0; // the next drain is of this connection's bytes
    this.#attempt = new Attempt(request, body, this, { link, cached, admission });
  }

  /**
   * The worker cannot be reached. The entry is dropped, so that the next request asks anew where the sandbox is; a read
   * does so itself, in place of its repair.
   */
  #unreachable(cached: CachedEntry): void {
    const { cache, counts } = this.#core;
    const { question } = this.#now.request;
    counts.transportErrors += 1;
    cache.removeIfStill(question, cached);
    if (!mayRepeat(this.#request) || this.#repaired) return this.#later();
    this.#repaired = true;
    this.#look(cache.lookUp(question), (found) => {
      if (found.digest === cached.digest) this.#later();
      else this.#present(found);
    });
  }

  /** the caller has lost its authorisation, or what it was for, or nobody could be asked about it for too long. */
  #unauthorised(end: AuthorisationEnd): void {
    if (this.#state === "over") return;
    this.#attempt?.cancel();
    if (end === "unasked") return this.#refuse(tryAgain);
    if (end === "gone") return this.#refuse({ kind: "not-running" });
    this.#core.audit.record("caller/revoked", { sandboxId: this.#request.sandboxId });
    this.#refuse({ kind: "unauthenticated", problem: "wrong" });
  }

  /** The gateway's own answer; a caller who has the head of another sees that one end instead. */
  #refuse(refusal: Refusal): void {
    this.#core.counts.refused += 1;
    const ending = this.#continuity?.between === true ? endingOf(refusal) : undefined;
    if (this.#began && ending === undefined) return this.#breakOff(false);
    this.#finish();
    if (ending === undefined) return this.#caller.refuse(refusal);
    this.#caller.data(ending);
    this.#caller.end();
  }

  #finish(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#cancelPause?.();
    this.#core.live.delete(this);
    this.#core.load.leave(this.#request.sandboxId);
  }
}
