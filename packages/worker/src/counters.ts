// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What a worker has done since it started. */
export interface WorkerCounters {
  admitted: number;
  refreshed: number;
  denied: number;
  /** Heads that could not be read. */
  malformed: number;
  /** Admitted, but the bridge could not be reached: answered with a failure, nothing forwarded. */
  unforwarded: number;
  /** streams ended because their epoch or their execution had. */
  cut: number;
  bridgeConnections: number;
}

export function newCounters(): WorkerCounters {
  return {
    admitted: 0,
    refreshed: 0,
    denied: 0,
    malformed: 0,
    unforwarded: 0,
    cut: 0,
    bridgeConnections: 0,
  };
}
