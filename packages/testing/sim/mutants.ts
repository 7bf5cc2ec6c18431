// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** One edit of the product's text. */
export interface Edit {
  /** Below `packages/`. */
  readonly file: string;
  /** Occurs exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** A product with one deliberate fault, that a simulation must notice. */
export interface Mutant {
  readonly name: string;
  readonly edits: readonly Edit[];
}

const admit = "capability/src/admit.ts";
const identity = "model/src/identity.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "the comparator ignores the generation",
    edits: [
      {
        file: admit,
        find: "const compared = compareIdentity(identity, record.identity);",
        replace:
          "const compared = compareIdentity({ ...identity, generation: record.identity.generation, activation: record.identity.activation }, record.identity);",
      },
    ],
  },
  {
    name: "the comparator ignores the placement",
    edits: [
      {
        file: identity,
        find: 'if (!samePlacement(claimed.placement, installed.placement)) return "other-placement";',
        replace: "",
      },
    ],
  },
];
