// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditFields } from "./audit-events.ts";

/** The events of the audit log that the bridge has to tell. */
export type BridgeEventName = Extract<keyof AuditFields, `bridge/${string}`>;

/** What the bridge says itself; the others are the worker's word about the bridge. */
export type ToldBridgeEventName = Exclude<BridgeEventName, "bridge/connected" | "bridge/misbehaved">;

/** The fields without their count. */
export type BridgeEventFields<N extends ToldBridgeEventName = ToldBridgeEventName> = Omit<
  AuditFields[N],
  "times"
>;

/** One kind of event that came `times` times since it was last told. */
export type BridgeEvent = {
  readonly [N in ToldBridgeEventName]: { readonly name: N; readonly fields: AuditFields[N] };
}[ToldBridgeEventName];

/** Which report was taken last. */
export interface SeenReport {
  /** Names the bridge process: numbers begin anew with it. */
  readonly source: string;
  readonly number: number;
}

/** What happened at the bridge since the report before. */
export interface BridgeReport extends SeenReport {
  readonly events: readonly BridgeEvent[];
}

/** Events in one report. */
export const bridgeReportLimit = 32;
