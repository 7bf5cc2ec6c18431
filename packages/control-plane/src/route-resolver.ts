// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Access,
  controlScopes,
  type ResolveAnswer,
  type ResolveRequest,
  type RouteSource,
  type SandboxId,
  type SandboxRecord,
  SpaceError,
} from "@space/model";
import { agentPort } from "@space/wire";
import type { ControlParts } from "./parts.ts";
import { awaitTurn, startWaiting } from "./turns.ts";
import { isWakeable, wakeSandbox } from "./wake-sandbox.ts";

type Problem = Extract<ResolveAnswer, { readonly kind: "unauthenticated" }>["problem"];

type Authorisation =
  | {
      readonly kind: "granted";
      readonly access: Access;
      readonly principal: string;
      readonly forMs: number;
    }
  | { readonly kind: "refused"; readonly problem: Problem };

/**
 * Answers gateways: who may go where. Checks the caller's credential, finds the execution that runs, and signs a
 * capability for exactly that. Counts how often it is asked, so that a demonstration can show that it is not.
 */
export class RouteResolver implements RouteSource {
  readonly #parts: ControlParts;
  #asked = 0;

  constructor(parts: ControlParts) {
    this.#parts = parts;
  }

  /** Look-ups since the start. */
  get asked(): number {
    return this.#asked;
  }

  async resolve(request: ResolveRequest): Promise<ResolveAnswer> {
    this.#asked += 1;
    const record = await this.#settled(request.sandboxId);
    if (record === undefined || isOver(record)) return { kind: "not-found" };
    const authorisation = authorise(this.#parts, request);
    if (authorisation.kind === "refused") {
      const { problem } = authorisation;
      this.#parts.audit.record("caller/refused", { sandboxId: request.sandboxId, problem });
      return { kind: "unauthenticated", problem };
    }
    // What ran does not come back: whoever holds a stream of it waits for nothing.
    if (record.state === "lost") return { kind: "not-found" };
    if (record.state === "running") return this.#entry(record, request, authorisation);
    if (!isWakeable(record) || !mayWake(request)) return { kind: "not-running" };
    if (request.wakes !== true) return { kind: "not-running", wakeable: true };
    const woken = await wakeSandbox(this.#parts, record);
    return woken === undefined ? { kind: "not-running" } : this.#entry(woken, request, authorisation);
  }

  /** What stands still for a snapshot alone is waited for: to its callers it runs. Throws `deadline/passed`. */
  async #settled(sandboxId: SandboxId): Promise<SandboxRecord | undefined> {
    const waiting = startWaiting(this.#parts);
    for (;;) {
      const record = await this.#parts.sandboxes.read(sandboxId);
      if (record?.state !== "pausing" || !record.goesOn) return record;
      await awaitTurn(this.#parts, sandboxId, waiting);
    }
  }

  #entry(
    { execution, tenantId }: SandboxRecord,
    { presenter }: ResolveRequest,
    { access, principal, forMs }: Extract<Authorisation, { readonly kind: "granted" }>,
  ): ResolveAnswer {
    const { identity } = execution;
    const endpoint = this.#parts.workers.endpointOf(identity.placement.workerId);
    if (endpoint === undefined) {
      throw new SpaceError("worker/unreachable", { workerId: identity.placement.workerId });
    }
    const caller = { tenantId, principal };
    const { token, claims } = this.#parts.signer.capability({ identity, access, caller, presenter });
    return {
      kind: "entry",
      entry: Object.freeze({
        route: Object.freeze({ identity, endpoint }),
        capability: token,
        capabilityIssuedAtMs: claims.issuedAtSeconds * 1000,
        capabilityExpiresAtMs: claims.expiresAtSeconds * 1000,
        access: claims.access,
        authorisedForMs: forMs,
      }),
    };
  }
}

/** Whoever has no credential for the agent asks only whether it is there. */
function mayWake({ credential, wanted }: ResolveRequest): boolean {
  return wanted.purpose === "service-port" || credential.kind !== "none";
}

/** A tombstone, or never there: outside these look alike. */
function isOver({ state }: SandboxRecord): boolean {
  return state === "killing" || state === "killed" || state === "failed";
}

function authorise(
  { tokens, clock, limits: { authorisedMs: forMs } }: ControlParts,
  { credential, wanted, sandboxId }: ResolveRequest,
): Authorisation {
  if (wanted.purpose === "service-port") {
    // The agent's operations are reached by scope alone, never as a port.
    if (wanted.port === agentPort) return { kind: "refused", problem: "wrong" };
    return { kind: "granted", access: wanted, principal: "public", forMs };
  }
  switch (credential.kind) {
    case "none": {
      // Only `GET /health` needs no credential. Of what else needs this scope the gateway has asked for one.
      if (wanted.scope !== "metrics") return { kind: "refused", problem: "missing" };
      const access: Access = { purpose: "control", scopes: ["metrics"] };
      return { kind: "granted", access, principal: "public", forMs };
    }
    case "access-token": {
      if (!tokens.matches(sandboxId, credential.token)) return { kind: "refused", problem: "wrong" };
      const access: Access = { purpose: "control", scopes: controlScopes };
      return { kind: "granted", access, principal: "access-token", forMs };
    }
    case "file-signature": {
      const scope = credential.operation === "read" ? "files:read" : "files:write";
      if (wanted.scope !== scope || !tokens.signed(sandboxId, credential)) {
        return { kind: "refused", problem: "wrong" };
      }
      const endsAtMs = (credential.expiresAtSeconds ?? Number.POSITIVE_INFINITY) * 1000;
      const leftMs = endsAtMs - clock.wallMs();
      if (leftMs <= 0) return { kind: "refused", problem: "signature-expired" };
      const access: Access = { purpose: "control", scopes: [scope] };
      return { kind: "granted", access, principal: "file-signature", forMs: Math.min(forMs, leftMs) };
    }
  }
}
