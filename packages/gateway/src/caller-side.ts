// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AnswerHead } from "@space/wire";
import type { Refusal } from "./refusal.ts";

/** The caller's end of an operation. Of `refuse` and `answer` one succeeds, once. */
export interface CallerSide {
  /** The guest's answer begins. False: it cannot be passed on, and `refuse` follows. */
  answer(head: AnswerHead): boolean;
  /** Bytes of the answer. False: the caller is slow, and `onceDrained` tells when there is room again. */
  data(chunk: Buffer): boolean;
  onceDrained(callback: () => void): void;
  /** The answer is complete. */
  end(): void;
  /** The answer broke off: the caller must see that it is not complete. `restarts`: and that it may come again. */
  broken(restarts: boolean): void;
  /** The gateway's own answer. */
  refuse(refusal: Refusal): void;
}
