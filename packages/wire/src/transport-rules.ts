// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/**
 * the kinds of operation, by what a failed transport leaves open. Each guest operation names its own in the table
 * of scopes.
 */
export type OperationClass =
  /** Changes nothing: asking twice is asking once. */
  | "read"
  /** Changes something, and nobody can say afterwards whether it did. */
  | "write"
  /** Writes to a process, once: under a name, by which the bridge recognises a repetition. */
  | "input"
  /** Writes to a process for as long as the caller likes, under a name and with offsets. */
  | "input-stream"
  /** Starts a process under an idempotency key: whether it ran can be asked. */
  | "start"
  /** Reads on where a process stands. */
  | "attach"
  /** Tells what changes from now on. */
  | "watch"
  /** Goes to a server of the user's own: what it does with a request is not ours to know. */
  | "port";

export interface TransportRule {
  /**
   * What becomes of a request that was presented and of which no answer came: `again` repeats it once, `ask` asks by its
   * key whether it ran and repeats it only when it did not (without a key it is `tell`), `tell` leaves it to the caller,
   * with a time to wait.
   */
  readonly unanswered: "again" | "ask" | "tell";
  /** Whether it ends by itself soon, so that a pause waits for it, within bounds. */
  readonly lasts: "briefly" | "openly";
}

/** the one table from class to what a transport error does. A verdict is no transport error. */
export const transportRules: Readonly<Record<OperationClass, TransportRule>> = Object.freeze({
  read: { unanswered: "again", lasts: "briefly" },
  write: { unanswered: "tell", lasts: "briefly" },
  input: { unanswered: "again", lasts: "briefly" },
  "input-stream": { unanswered: "again", lasts: "openly" },
  start: { unanswered: "ask", lasts: "openly" },
  attach: { unanswered: "again", lasts: "openly" },
  watch: { unanswered: "again", lasts: "openly" },
  port: { unanswered: "tell", lasts: "openly" },
});
