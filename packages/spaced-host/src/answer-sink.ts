// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AnswerHead } from "@space/wire";

/** Where a streamed answer goes: an exchange, or an answer that outlives its exchanges. */
export interface AnswerSink {
  /** Whether the answer's head has been given. */
  readonly answered: boolean;
  /** Whether nothing more can be given. */
  readonly over: boolean;
  begin(head: AnswerHead): void;
  /** False: stop until the drain listener is called; what was given is sent all the same. */
  write(chunk: Buffer): boolean;
  end(): void;
  /** Breaks the answer off. */
  reset(reason: string): void;
  /** Sets the one listener for room after `write` returned false. */
  listenForDrain(listener: () => void): void;
  /** Calls back once, when the answer is over for whatever reason; at once when it is. */
  onOver(listener: () => void): void;
}
