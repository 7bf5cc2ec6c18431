// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { longestHandOverSeconds } from "@space/model";

/** Every bound of a worker. Times in milliseconds. */
export interface WorkerLimits {
  /** How long a pause lets short operations end before it cuts them. */
  readonly pauseDrainMs: number;
  /** How long the bridge may then wait for what the guest itself is still doing. */
  readonly quiesceMs: number;
  /** Longest wait for a verified connection to the bridge, which may have to boot first beside many others. */
  readonly bridgeConnectMs: number;
  /** Pause before the next try; doubled up to `bridgeRetryMostMs`. */
  readonly bridgeRetryMs: number;
  readonly bridgeRetryMostMs: number;
  /** Activations told to a new bridge process at once. */
  readonly adoptionsAtOnce: number;
  /** Pause before an unacknowledged report is sent again. */
  readonly reportRetryMs: number;
  /** pause before a request for a lease that had no answer is made again. */
  readonly leaseRetryMs: number;
  /** Commands that may wait for one sandbox; one more is `worker/busy`. */
  readonly waitingCommands: number;
  /** Tombstones kept; the oldest beyond them are forgotten. A late install stays refused: its process runs no more. */
  readonly retiredRecords: number;
  /** How long a closing worker waits for commands that are under way. */
  readonly closeWaitMs: number;
  /** Operations open on one gateway's link. */
  readonly streamsPerGateway: number;
  /** Body bytes that may follow a refused head (R-27: a body sent along has at most 64 KiB). */
  readonly refusedBodyBytes: number;
  /** capabilities whose form and signature are remembered. */
  readonly rememberedCapabilities: number;
  /** sealed chains whose verified end is remembered. */
  readonly rememberedChains: number;
  /** Sealed bytes held in memory for the workers that moved snapshots go to. */
  readonly handedOverBytes: number;
  /** How long they are held: a grant lives no longer. */
  readonly handedOverMs: number;
  /** Other workers' connections at once, and as many snapshots that are read from others at once. */
  readonly peers: number;
  /** Chunks that another worker may ask for at once. */
  readonly chunksPerPeer: number;
  /** A peer that asks for nothing, or reads nothing, for so long is cut off. */
  readonly peerIdleMs: number;
  /** Longest wait for a verified connection to another worker. */
  readonly peerDialMs: number;
  /** Longest wait for one chunk, the connection included; after it all comes from the store. */
  readonly peerChunkMs: number;
}

export const defaultWorkerLimits: WorkerLimits = Object.freeze({
  pauseDrainMs: 2000,
  quiesceMs: 10_000,
  bridgeConnectMs: 20_000,
  bridgeRetryMs: 100,
  bridgeRetryMostMs: 5000,
  adoptionsAtOnce: 16,
  reportRetryMs: 5000,
  leaseRetryMs: 1000,
  waitingCommands: 16,
  retiredRecords: 10_000,
  closeWaitMs: 10_000,
  streamsPerGateway: 20_000,
  refusedBodyBytes: 64 * 1024,
  rememberedCapabilities: 10_000,
  rememberedChains: 4096,
  handedOverBytes: 256 * 1024 * 1024,
  handedOverMs: longestHandOverSeconds * 1000,
  peers: 8,
  chunksPerPeer: 8,
  peerIdleMs: 10_000,
  peerDialMs: 2000,
  peerChunkMs: 5000,
});
