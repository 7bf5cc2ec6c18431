// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { EventLoop } from "./event-loop.ts";
import { type ReadCapability, readCapability, type Statement } from "./statements.ts";
import type { KnownCapability, Presentation, TrueOperation } from "./truth.ts";

/** How far a gateway's clock may run ahead in that time, or fall behind. */
const clockMarginMs = 2_000;
/** Where a stream that was cut goes on. */
const continuedPath = "/process.Process/Connect";
/** the first, one repaired, one after a transport error, and that one repaired. */
const presentationsLimit = 4;

/** What gateways were granted, what was rejected there, and what they present. */
export class GatewayOracle {
  readonly #loop: EventLoop;
  readonly #violate: (statement: Statement, problem: string) => void;
  readonly #capabilities = new Map<string, KnownCapability>();
  /** When a gateway first heard that a route is rejected. */
  readonly #rejections = new Map<string, number>();
  /** Until when a caller is authorised at a gateway, and what it was granted last. */
  readonly #grants = new Map<string, { readonly untilMs: number; readonly known: KnownCapability }>();
  #repair: { readonly key: string; readonly step: number } | undefined;
  /** how long a caller's check counts in this world. */
  authorisedMs = 60_000;

  constructor(loop: EventLoop, violate: (statement: Statement, problem: string) => void) {
    this.#loop = loop;
    this.#violate = violate;
  }

  /** A look-up was sent. Returns what to call with a granted entry. */
  asked(gateway: string, authority: string): (capability: string) => void {
    const askedMs = this.#loop.nowMs;
    const key = `${gateway} ${authority}`;
    const isRepair = this.#repair?.key === key && this.#repair.step === this.#loop.steps;
    const heldMs = this.#grants.get(key)?.untilMs ?? 0;
    // What has almost ended by true time may have ended by the gateway's clock: then this is a check of its own.
    const limitMs = isRepair && heldMs > askedMs + clockMarginMs ? heldMs : Number.POSITIVE_INFINITY;
    return (token) => {
      const { nowMs: issuedMs } = this.#loop;
      let known = this.#capabilities.get(token);
      if (known === undefined) {
        known = { token, read: undefined, issuedMs, askedMs };
        this.#capabilities.set(token, known);
      }
      const untilMs = Math.min(askedMs + this.authorisedMs, limitMs);
      this.#grants.set(key, { untilMs: Math.max(untilMs, this.#grants.get(key)?.untilMs ?? 0), known });
    };
  }

  /**
   * A recognised rejection reached a gateway: a look-up for the same authority in this very turn is a repair; unless
   * another route was granted since, which is taken in its place, and whose use may begin a check like any other.
   */
  rejected({ key, capability }: Presentation): void {
    const rejected = routeOf(capability);
    const granted = this.#grants.get(key)?.known;
    if (granted !== undefined && routeOf(readOf(granted)) === rejected)
      this.#repair = { key, step: this.#loop.steps };
    const route = `${key} ${rejected}`;
    if (!this.#rejections.has(route)) this.#rejections.set(route, this.#loop.nowMs);
  }

  /** A `deny` reached a gateway: the operation is refused, and stays so. */
  denied({ operation }: Presentation): void {
    operation.denials = (operation.denials ?? 0) + 1;
  }

  /** An operation's head leaves a gateway. */
  presented(
    { gateway, host, path }: { readonly gateway: string; readonly host: string; readonly path: string },
    operation: TrueOperation,
    token: string,
  ): Presentation | undefined {
    const known = this.#capabilities.get(token);
    if (known === undefined) {
      this.#violate("R-10: keys", `operation ${operation.number}: a capability that was never issued here`);
      return undefined;
    }
    const { nowMs } = this.#loop;
    const key = `${gateway} ${operation.authorityFor(path)}`;
    const untilMs = this.#grants.get(key)?.untilMs ?? 0;
    if (nowMs > untilMs + clockMarginMs)
      this.#violate(
        "R-25: authorisation ends",
        `operation ${operation.number} was presented ${nowMs - untilMs} ms after its caller's authorisation had ended`,
      );
    const { issuedMs, askedMs } = known;
    const presentation: Presentation = {
      operation,
      capability: readOf(known),
      presenter: gateway,
      sentMs: nowMs,
      issuedMs,
      askedMs,
      host,
      path,
      key,
      epoch: undefined,
      isForwarded: false,
    };
    this.#isRepairedRightly(presentation);
    operation.presented.push(presentation);
    return presentation;
  }

  /** after a rejection, what is presented was looked up after it, or was here before; and only once. */
  #isRepairedRightly({ operation, path, askedMs, issuedMs, presenter }: Presentation): void {
    const last = operation.presented.at(-1);
    if (last === undefined || path === continuedPath) return;
    if (operation.presented.length >= presentationsLimit)
      this.#violate("R-26: one repair", `operation ${operation.number} is presented again and again`);
    if (last.presenter !== presenter) return;
    const rejectedMs = this.#rejections.get(`${last.key} ${routeOf(last.capability)}`);
    if (rejectedMs === undefined) return;
    if (askedMs < rejectedMs && issuedMs > rejectedMs)
      this.#violate(
        "R-24: only a fresh look-up repairs",
        `operation ${operation.number} was repaired by a look-up of ${rejectedMs - askedMs} ms before the rejection`,
      );
  }
}

function routeOf({ generation, attempt }: ReadCapability): string {
  return `${generation} ${attempt}`;
}

function readOf(known: KnownCapability): ReadCapability {
  known.read ??= readCapability(known.token);
  return known.read;
}
