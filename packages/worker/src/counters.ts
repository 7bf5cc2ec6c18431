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
  /** Sealed chunks given to other workers, and requests of theirs that were refused. */
  chunksGiven: number;
  handOversRefused: number;
  /** Chunks of moved snapshots that came from the worker that made them, and those that came from the store all the same. */
  chunksReceived: number;
  chunksNotReceived: number;
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
    chunksGiven: 0,
    handOversRefused: 0,
    chunksReceived: 0,
    chunksNotReceived: 0,
  };
}
