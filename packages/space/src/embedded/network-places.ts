// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Where one worker stands. */
export interface WorkerPlace {
  /** The address at which it listens, and gateways reach it. */
  readonly host: string;
  /** Goes before its program: what runs that where it belongs, as `nsenter` does. Empty: here. */
  readonly enter: readonly string[];
}

/** Where the parts stand on the network, when not all on loopback: for drills that cut them apart. */
export interface NetworkPlaces {
  /** The address at which the control plane listens for workers. */
  readonly controlPlane: string;
  /** By their order; those beyond it are on loopback. */
  readonly workers: readonly WorkerPlace[];
}

const loopback = "127.0.0.1";

export const allOnLoopback: NetworkPlaces = Object.freeze({ controlPlane: loopback, workers: [] });

/** Of the worker with this number, from 1 on. */
export function placeOf({ workers }: NetworkPlaces, index: number): WorkerPlace {
  return workers[index - 1] ?? { host: loopback, enter: [] };
}
