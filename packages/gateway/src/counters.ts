// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What the gateway has done since it started. Only ever grows. */
export interface GatewayCounts {
  /** Requests to sandboxes, WebSockets included. */
  readonly requests: number;
  /** Answers recognised as let through by a worker. */
  readonly admitted: number;
  /** Recognised `refresh-route` answers. */
  readonly refreshes: number;
  /** Requests sent again, rebuilt, after a repair. */
  readonly repairs: number;
  /** Streams that went on over another connection. */
  readonly continued: number;
  /** Requests that ended in a refusal by the gateway or by a worker's `deny`. */
  readonly refused: number;
  /** Answers that were neither an admission nor a verdict, and streams that broke before any answer. */
  readonly transportErrors: number;
  /** Calls of `RouteSource.resolve`. */
  readonly resolves: number;
}

export type MutableCounts = { -readonly [Name in keyof GatewayCounts]: number };

export function newCounts(): MutableCounts {
  return {
    requests: 0,
    admitted: 0,
    refreshes: 0,
    repairs: 0,
    continued: 0,
    refused: 0,
    transportErrors: 0,
    resolves: 0,
  };
}
