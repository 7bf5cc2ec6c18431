// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import type { ProcessExit } from "@space/spaced-guest";
import type { CarriedStart, CarriedState } from "./carried-state.ts";
import { EnvdError } from "./envd-error.ts";
import type { HostedProcess } from "./hosted-process.ts";

/** How long a key counts after its first use; longer while its process runs. */
export const startKeyLifeMs: number = 10 * 60_000;
const keyLimit = 10_000;
/** How far a caller's clock may be ahead of this host's. */
const skewMs = 15_000;
const uuid7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** what is known of a start. `unknown`: the memory that knew is gone. */
export type StartOutcome =
  | { readonly kind: "did-not-run" }
  | { readonly kind: "running"; readonly pid: number }
  | { readonly kind: "ended"; readonly pid: number; readonly exit: ProcessExit }
  | { readonly kind: "unknown" };

type State =
  | { readonly kind: "starting" }
  | { readonly kind: "running"; readonly process: HostedProcess }
  | Exclude<StartOutcome, { readonly kind: "running" }>;

/** One key, for as long as it counts. */
export class RememberedStart {
  readonly firstUsedMs: number;
  /** Of what the key was first used for. */
  readonly digest: string;
  /** The name of its answer's stream, while that may go on. */
  streamKey: string | undefined;
  #state: State = { kind: "starting" };
  #settle: () => void = () => undefined;
  readonly #settled = new Promise<void>((resolve) => {
    this.#settle = resolve;
  });

  constructor(firstUsedMs: number, digest: string) {
    this.firstUsedMs = firstUsedMs;
    this.digest = digest;
  }

  /** Undefined while the guest is being asked. */
  get saved(): CarriedStart["state"] | undefined {
    const state = this.#state;
    if (state.kind === "starting") return undefined;
    return state.kind === "running" ? { kind: "running", pid: state.process.pid } : state;
  }

  /** What is known of it elsewhere; `find` has the processes that run. */
  restore(state: CarriedStart["state"], find: (pid: number) => HostedProcess | undefined): void {
    if (state.kind !== "running") return this.#become(state);
    const process = find(state.pid);
    if (process === undefined) this.#become({ kind: "unknown" });
    else this.ran(process);
  }

  get busy(): boolean {
    return this.#state.kind === "starting" || this.#state.kind === "running";
  }

  /** Its process while it runs; resolves when the start is decided. */
  async process(): Promise<HostedProcess | undefined> {
    await this.#settled;
    return this.#state.kind === "running" ? this.#state.process : undefined;
  }

  async outcome(): Promise<StartOutcome> {
    await this.#settled;
    const state = this.#state;
    switch (state.kind) {
      case "starting":
        return { kind: "unknown" };
      case "running":
        return { kind: "running", pid: state.process.pid };
      case "did-not-run":
      case "ended":
      case "unknown":
        return state;
    }
  }

  ran(process: HostedProcess): void {
    this.#become({ kind: "running", process });
    process.onceOver((outcome) => {
      const { pid } = process;
      this.#become(
        outcome.kind === "ended" ? { kind: "ended", pid, exit: outcome.exit } : { kind: "unknown" },
      );
    });
  }

  /** Nothing was started, and nothing will be. */
  didNotRun(): void {
    this.#become({ kind: "did-not-run" });
  }

  /** The guest was asked, and its answer is lost. */
  lost(): void {
    this.#become({ kind: "unknown" });
  }

  #become(state: State): void {
    this.#state = state;
    this.#settle();
  }
}

export type StartClaim =
  | { readonly kind: "new"; readonly start: RememberedStart }
  | { readonly kind: "known"; readonly start: RememberedStart }
  | { readonly kind: "unknown" };

/**
 * the starts of one sandbox's processes that carry an idempotency key. It lives as long as the bridge's side of
 * those processes does. A key that it cannot vouch for, because it is younger than a use may be, is `unknown`.
 */
export class StartMemory {
  readonly #clock: Clock;
  readonly #starts = new Map<string, RememberedStart>();
  /** From when on it knows every use; undefined: from the sandbox's beginning. */
  #since: { readonly monotonicMs: number; readonly wallMs: number } | undefined;

  /** `isFirst`: nothing has ever run in this sandbox before. */
  constructor(clock: Clock, isFirst: boolean) {
    this.#clock = clock;
    this.#since = isFirst ? undefined : { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }

  get size(): number {
    return this.#starts.size;
  }

  /** Takes the key for a start, once. Throws `invalid_argument` for another start's key, or `resource_exhausted`. */
  claim(key: string, digest: string): StartClaim {
    const known = this.#find(key);
    if (known !== undefined) {
      if (known.digest !== digest && known.digest !== "")
        throw new EnvdError("invalid_argument", "the idempotency key was used for another start");
      return { kind: "known", start: known };
    }
    if (!this.#vouchesFor(key)) return { kind: "unknown" };
    return { kind: "new", start: this.#add(key, digest) };
  }

  /** Whether it ran. A key that was not used is used up by this: its start, should it still come, does not run. */
  async outcome(key: string): Promise<StartOutcome> {
    const known = this.#find(key);
    if (known !== undefined) return known.outcome();
    if (!this.#vouchesFor(key)) return { kind: "unknown" };
    this.#add(key, "").didNotRun();
    return { kind: "did-not-run" };
  }

  /** A start that failed before anything ran: the key may be used again. */
  release(key: string, start: RememberedStart): void {
    start.didNotRun();
    if (this.#starts.get(key) === start) this.#starts.delete(key);
  }

  save(): CarriedState["starts"] {
    const nowMs = this.#clock.monotonicMs();
    const known = [...this.#starts].map(([key, start]) => ({
      key,
      digest: start.digest,
      ageMs: nowMs - start.firstUsedMs,
      streamKey: start.streamKey,
      state: start.saved ?? { kind: "unknown" as const },
    }));
    const since = this.#since && { agoMs: nowMs - this.#since.monotonicMs, wallMs: this.#since.wallMs };
    return { known, since: since ?? null };
  }

  restore({ known, since }: CarriedState["starts"], find: (pid: number) => HostedProcess | undefined): void {
    const nowMs = this.#clock.monotonicMs();
    this.#since = since === null ? undefined : { monotonicMs: nowMs - since.agoMs, wallMs: since.wallMs };
    for (const { key, digest, ageMs, streamKey, state } of known) {
      const start = new RememberedStart(nowMs - ageMs, digest);
      start.streamKey = streamKey;
      start.restore(state, find);
      this.#starts.set(key, start);
    }
  }

  #find(key: string): RememberedStart | undefined {
    const nowMs = this.#clock.monotonicMs();
    for (const [old, start] of this.#starts) {
      if (nowMs - start.firstUsedMs < startKeyLifeMs) break; // in the order of their first use
      if (!start.busy) this.#starts.delete(old);
    }
    return this.#starts.get(key);
  }

  #add(key: string, digest: string): RememberedStart {
    if (this.#starts.size >= keyLimit)
      throw new EnvdError("resource_exhausted", "too many idempotency keys are in use");
    const start = new RememberedStart(this.#clock.monotonicMs(), digest);
    this.#starts.set(key, start);
    return start;
  }

  #vouchesFor(key: string): boolean {
    if (this.#since === undefined) return true;
    if (this.#clock.monotonicMs() - this.#since.monotonicMs >= startKeyLifeMs) return true;
    const [, high, low] = uuid7.exec(key) ?? [];
    if (high === undefined || low === undefined) return false;
    return Number.parseInt(high + low, 16) >= this.#since.wallMs + skewMs;
  }
}
