// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** One edit of a file's text. */
export interface Edit {
  /** Below `packages/`. */
  readonly file: string;
  /** Occurs exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** A product with one deliberate fault, that a simulation must notice. */
export interface Mutant {
  /** One word or a few, for the command line. */
  readonly name: string;
  /** What it does wrong. */
  readonly fault: string;
  readonly edits: readonly Edit[];
}
