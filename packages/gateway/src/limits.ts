// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Every bound that the gateway holds. All have a default; a composition may lower or raise them. */
export interface GatewayLimits {
  /** Bytes of one request's headers, with its first line. */
  readonly headerBytes: number;
  /** Header lines of one request. */
  readonly headerLines: number;
  /** Bytes of one request's body. */
  readonly bodyBytes: number;
  /** bodies up to this length are buffered and sent along with the head. */
  readonly bufferedBodyBytes: number;
  /** How long a body that may be short is waited for before the head goes ahead without it. */
  readonly shortBodyWaitMs: number;
  /** Requests to one sandbox at a time, streams included. */
  readonly sandboxRequests: number;
  /** Requests under way at a time, of all callers. */
  readonly requests: number;
  /** Cached entries, of all callers. */
  readonly cacheEntries: number;
  /** Look-ups at the control plane under way at a time. */
  readonly lookups: number;
  /** How long a look-up may take; it includes waking a paused sandbox. */
  readonly lookupWaitMs: number;
  /** How long a worker may take from the head of a request to the head of its answer. */
  readonly answerWaitMs: number;
  /** how long a stream that was cut is held open while its sandbox does not run. */
  readonly heldStreamMs: number;
  /**
   * how long input waits whose sandbox does not run or whose answer was lost. Below the bridge's memory of inputs
   * (`continuationWaitMs`), so that nothing is written twice, or to another execution.
   */
  readonly heldInputMs: number;
  /**
   * how long a running operation goes on after its caller's authorisation has ended while the control plane cannot
   * be asked. As long as R-16 lets a worker hold its streams without it: a lease's term, and 60 s.
   */
  readonly unaskedMs: number;
  /** callers that left while their stream was cut, of whom its bridge is still to be told. */
  readonly farewells: number;
  /** how often a held stream's caller is shown that it lives. */
  readonly heldKeepaliveMs: number;
  /** After the answer, how long the rest of an unwanted body is read and thrown away before the connection is cut. */
  readonly lingerMs: number;
  /** A client connection without a byte in either direction for this long is closed. */
  readonly idleMs: number;
  /** How long the head of a request may take to arrive. */
  readonly headWaitMs: number;
  /** How long a connection may stay open between two requests. E2B's clients expect more than 610 s. */
  readonly keepAliveMs: number;
  /** Streams per HTTP/2 connection at a time. */
  readonly sessionStreams: number;
}

export const defaultGatewayLimits: GatewayLimits = Object.freeze({
  headerBytes: 64 * 1024,
  headerLines: 200,
  bodyBytes: 64 * 1024 ** 3,
  bufferedBodyBytes: 64 * 1024,
  shortBodyWaitMs: 20,
  sandboxRequests: 2000,
  requests: 20_000,
  cacheEntries: 50_000,
  lookups: 5000,
  lookupWaitMs: 30_000,
  answerWaitMs: 620_000,
  heldStreamMs: 300_000,
  heldInputMs: 30_000,
  unaskedMs: 120_000,
  farewells: 5000,
  heldKeepaliveMs: 20_000,
  lingerMs: 5000,
  idleMs: 640_000,
  headWaitMs: 30_000,
  keepAliveMs: 620_000,
  sessionStreams: 2000,
});

/** The defaults with some of them replaced. */
export function gatewayLimits(some: Partial<GatewayLimits> = {}): GatewayLimits {
  return Object.freeze({ ...defaultGatewayLimits, ...some });
}
