// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { AuditCheckpoint, AuditWitness, CheckpointSigner } from "@space/model";
import type { ChainState } from "./chain.ts";

export interface SignedCheckpoint {
  readonly token: string;
  /** To be recorded before the checkpoint, which is then signed anew. */
  readonly witness: AuditWitness | undefined;
}

/** When the next checkpoint is due, and what it says. */
export class Checkpoints {
  readonly #about: Pick<AuditCheckpoint, "log" | "process">;
  readonly #everyRecords: number;
  readonly #shown = new Set<string>();
  #signer: CheckpointSigner | undefined;
  /** Since the last try. */
  #records = 0;
  #hasUnsigned = false;
  #isAskedFor = false;

  constructor(about: Pick<AuditCheckpoint, "log" | "process">, everyRecords: number) {
    this.#about = about;
    this.#everyRecords = everyRecords;
  }

  get isDue(): boolean {
    return this.#signer !== undefined && (this.#isAskedFor || this.#records >= this.#everyRecords);
  }

  /** Whether anything was recorded that no checkpoint covers. */
  get hasUnsigned(): boolean {
    return this.#hasUnsigned;
  }

  signWith(signer: CheckpointSigner): void {
    this.#signer = signer;
    this.#isAskedFor = true;
  }

  count(records: number): void {
    this.#records += records;
    this.#hasUnsigned = true;
  }

  ask(): void {
    this.#isAskedFor = true;
  }

  /** A segment shows its own witnesses and begins with a checkpoint, so that it can be judged without those before it. */
  beginSegment(): void {
    this.#shown.clear();
    this.#isAskedFor = true;
  }

  /** Throws what the signer throws. */
  sign({ sequence, head }: ChainState, nowMs: number): SignedCheckpoint {
    if (this.#signer === undefined) throw new TypeError("there is no signer");
    const issuedAtSeconds = Math.floor(nowMs / 1000);
    const { token, witness } = this.#signer({ ...this.#about, count: sequence, head, issuedAtSeconds });
    const shown = `${witness.kind} ${witness.proof}`;
    if (this.#shown.has(shown)) return { token, witness: undefined };
    return { token, witness };
  }

  /** The witness has been recorded. */
  show({ kind, proof }: AuditWitness): void {
    this.#shown.add(`${kind} ${proof}`);
  }

  /** A checkpoint was recorded, or could not be; then what it was to cover waits for the next, which is due at its own time. */
  settle(isSigned: boolean): void {
    this.#records = 0;
    if (isSigned) this.#hasUnsigned = false;
    this.#isAskedFor = false;
  }
}
