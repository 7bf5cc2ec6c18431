// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type AuditSink,
  type BridgeEvent,
  type Clock,
  type HostControl,
  isSpaceError,
  refusalFacts,
  type SeenReport,
} from "@space/model";

/** Before the next report is asked for: a bridge that has gone over to a guest floods no log. An honest one takes longer. */
const askAgainMs = 4_000;

/**
 * Brings what the bridge has to tell into this worker's audit log: each report once, as long as this daemon runs, and
 * under the bridge's own names. One that was told to an earlier daemon, which ended before it said so, is told again.
 */
export class BridgeReports {
  readonly #audit: AuditSink;
  readonly #clock: Clock;
  #seen: SeenReport | null = null;

  constructor({ audit, clock }: { readonly audit: AuditSink; readonly clock: Clock }) {
    this.#audit = audit;
    this.#clock = clock;
  }

  /** Listens until the connection ends, or until the bridge says what it may not. Never rejects. */
  async follow(control: HostControl, isOpen: () => boolean): Promise<void> {
    while (isOpen()) {
      try {
        const { source, number, events } = await control.takeReport(this.#seen);
        this.#seen = { source, number };
        for (const event of events) this.#record(event);
        await this.#pause();
      } catch (error) {
        if (isSpaceError(error, "deadline/passed")) continue; // nothing happened: asked again
        if (!isSpaceError(error, "link/closed")) this.#audit.record("bridge/misbehaved", refusalFacts(error));
        return;
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(askAgainMs, resolve);
    });
  }

  #record({ name, fields }: BridgeEvent): void {
    this.#audit.record(name, fields);
  }
}
