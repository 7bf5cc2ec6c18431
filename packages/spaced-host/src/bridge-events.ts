// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type BridgeEvent,
  type BridgeEventFields,
  type BridgeReport,
  bridgeReportLimit,
  type Clock,
  type Random,
  type SeenReport,
  type ToldBridgeEventName,
} from "@space/model";

/** Where the bridge's parts tell what the audit log has to hold. Returns at once. */
export interface BridgeAudit {
  record<N extends ToldBridgeEventName>(name: N, fields: BridgeEventFields<N>): void;
}

/** Different events that wait for the daemon. What comes on top is counted. */
const kindsLimit = 256;
/** Between two reports, so that whoever makes events makes few records of them. The first after a pause goes at once. */
const reportEveryMs = 5_000;

interface WaitingEvent {
  readonly name: ToldBridgeEventName;
  readonly fields: object;
  times: number;
}

/**
 * The bridge's share of the worker's audit log, kept until a daemon has acknowledged it: in bounded memory, the same event
 * again only counted, so that neither a guest nor a caller floods the log, and nothing is lost without a count. What a
 * bridge that ends has not told is lost with it; the worker's record of the next bridge shows that it ended.
 */
export class BridgeEvents implements BridgeAudit {
  readonly #clock: Clock;
  readonly #source: string;
  readonly #waiting = new Map<string, WaitingEvent>();
  #suppressed = 0;
  #sent: BridgeReport | undefined;
  #number = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #waiter: ((report: BridgeReport) => void) | undefined;
  #cancel: (() => void) | undefined;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#source = Buffer.from(random.bytes(8)).toString("hex");
  }

  record<N extends ToldBridgeEventName>(name: N, fields: BridgeEventFields<N>): void {
    const key = JSON.stringify([name, fields]);
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) waiting.times += 1;
    else if (this.#waiting.size < kindsLimit) this.#waiting.set(key, { name, fields, times: 1 });
    else this.#suppressed += 1;
    this.#offer();
  }

  take(seen: SeenReport | null): Promise<BridgeReport> {
    const { number, source } = this.#sent ?? {};
    if (seen !== null && seen.source === source && seen.number === number) this.#sent = undefined;
    if (this.#sent !== undefined) return Promise.resolve(this.#sent);
    return new Promise((resolve) => {
      this.#waiter = resolve; // an earlier one is of a daemon that is gone
      this.#offer();
    });
  }

  close(): void {
    this.#cancel?.();
    this.#waiter = undefined;
  }

  #offer(): void {
    const isIdle = this.#waiting.size === 0 && this.#suppressed === 0;
    if (this.#waiter === undefined || isIdle || this.#cancel !== undefined) return;
    const waitMs = this.#lastMs + reportEveryMs - this.#clock.monotonicMs();
    if (waitMs <= 0) return this.#report(this.#waiter);
    this.#cancel = this.#clock.after(waitMs, () => {
      this.#cancel = undefined;
      this.#offer();
    });
  }

  #report(tell: (report: BridgeReport) => void): void {
    this.#waiter = undefined;
    this.#lastMs = this.#clock.monotonicMs();
    this.#number += 1;
    this.#sent = { source: this.#source, number: this.#number, events: this.#takeEvents() };
    tell(this.#sent);
  }

  #takeEvents(): readonly BridgeEvent[] {
    const events: BridgeEvent[] = [];
    if (this.#suppressed > 0) {
      events.push({ name: "bridge/suppressed", fields: { times: this.#suppressed } });
      this.#suppressed = 0;
    }
    for (const [key, { name, fields, times }] of this.#waiting) {
      if (events.length >= bridgeReportLimit) break;
      events.push({ name, fields: { ...fields, times } } as BridgeEvent); // cast: `record` took both together
      this.#waiting.delete(key);
    }
    return events;
  }
}
