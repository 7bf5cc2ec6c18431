// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Access,
  type Clock,
  type ExecutionIdentity,
  freezeIdentity,
  nextGeneration,
  parseActivationId,
  parseGeneration,
  parseSandboxId,
  parseWorkerId,
  type ResolveAnswer,
  type ResolveRequest,
  type RouteSource,
  type SandboxId,
  type WorkerId,
} from "@space/model";

export const fakeSandboxId: SandboxId = parseSandboxId("iabcdefghij0123456789");
export const fakeWorkerId: WorkerId = parseWorkerId(`wrk_${"a".repeat(16)}`);

export function fakeIdentity(generation: bigint, sandboxId: SandboxId = fakeSandboxId): ExecutionIdentity {
  return freezeIdentity({
    sandboxId,
    generation: parseGeneration(generation.toString()),
    placement: { workerId: fakeWorkerId, substrate: "namespace" },
    activation: { id: parseActivationId(`act_${"a".repeat(26)}`), attempt: 1 },
  });
}

export const nextIdentity = (identity: ExecutionIdentity): ExecutionIdentity =>
  fakeIdentity(nextGeneration(identity.generation), identity.sandboxId);

/**
 * A control plane's answers. It knows where each sandbox runs; `answer` replaces what it says, `hold` makes look-ups
 * wait. A capability is the text `cap <number of the look-up> <generation>`.
 */
export class FakeRouteSource implements RouteSource {
  readonly requests: ResolveRequest[] = [];
  /** The execution that each sandbox has now. */
  readonly identities = new Map<SandboxId, ExecutionIdentity>([[fakeSandboxId, fakeIdentity(1n)]]);
  answer: ((request: ResolveRequest, number: number) => ResolveAnswer | Promise<ResolveAnswer>) | undefined;
  authorisedForMs = 60_000;
  readonly #clock: Clock;
  #held: (() => void)[] | undefined;
  readonly #wake: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async resolve(request: ResolveRequest): Promise<ResolveAnswer> {
    const number = this.requests.push(request) - 1;
    for (const resolve of this.#wake.splice(0)) resolve();
    // The answer is made when the question comes, however long it travels.
    const answer = this.answer === undefined ? this.entry(request, number) : this.answer(request, number);
    if (this.#held !== undefined) await new Promise<void>((resolve) => this.#held?.push(resolve));
    return answer;
  }

  /** The true answer to a request. */
  entry(request: ResolveRequest, number: number): ResolveAnswer {
    const identity = this.identities.get(request.sandboxId);
    if (identity === undefined) return { kind: "not-found" };
    const nowMs = this.#clock.wallMs();
    return {
      kind: "entry",
      entry: {
        route: {
          identity,
          endpoint: { workerId: identity.placement.workerId, host: "127.0.0.1", port: 1 },
        },
        capability: `cap ${number} ${identity.generation}`,
        capabilityIssuedAtMs: nowMs,
        capabilityExpiresAtMs: nowMs + 120_000,
        access: granted(request),
        authorisedForMs: this.authorisedForMs,
      },
    };
  }

  /** From now on answers wait for `release`. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const resolve of held) resolve();
  }

  /** Resolves when so many look-ups have begun. */
  async asked(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }
}

function granted({ wanted }: ResolveRequest): Access {
  return wanted.purpose === "control" ? { purpose: "control", scopes: [wanted.scope] } : wanted;
}
