// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** `signature`: something that is signed, or should be, is not what it must be. */
export type LogProblemKind = "altered" | "removed" | "reordered" | "truncated" | "signature";

export interface Place {
  readonly segment: string;
  readonly line: number;
}

export interface LogProblem extends Place {
  readonly kind: LogProblemKind;
  /** The first record that is concerned; 0 when it is none. */
  readonly sequence: number;
  readonly detail: string;
}

interface Gap extends Place {
  readonly from: number;
  readonly through: number;
}

/** Findings that are kept of one log; more are counted. */
export const findingsLimit = 1_000;

/** Collects what is wrong. A missing record that turns up later was reordered, not removed. */
export class Findings {
  readonly #problems: LogProblem[] = [];
  #gaps: Gap[] = [];
  #leftOff = 0;

  add(problem: LogProblem): void {
    if (this.#problems.length + this.#gaps.length < findingsLimit) this.#problems.push(problem);
    else this.#leftOff += 1;
  }

  gap(from: number, through: number, place: Place): void {
    if (this.#problems.length + this.#gaps.length < findingsLimit)
      this.#gaps.push({ from, through, ...place });
    else this.#leftOff += 1;
  }

  /** A record that comes after a later one: one that was missing, or one that is there twice. */
  outOfOrder({ sequence, ...place }: Place & { readonly sequence: number }): void {
    const gap = this.#gaps.find(({ from, through }) => from <= sequence && sequence <= through);
    const detail = gap === undefined ? "is there twice" : "is not at its place";
    this.add({ kind: "reordered", sequence, ...place, detail });
    if (gap === undefined) return;
    const rest = [
      { ...gap, through: sequence - 1 },
      { ...gap, from: sequence + 1 },
    ].filter(({ from, through }) => from <= through);
    this.#gaps = this.#gaps.flatMap((other) => (other === gap ? rest : [other]));
  }

  result(): { readonly problems: readonly LogProblem[]; readonly problemsLeftOff: number } {
    const removed = this.#gaps.map(({ from, through, ...place }): LogProblem => {
      const detail = from === through ? "is missing" : `records ${from} to ${through} are missing`;
      return { kind: "removed", sequence: from, ...place, detail };
    });
    const problems = [...this.#problems, ...removed].toSorted((a, b) => a.sequence - b.sequence);
    return { problems, problemsLeftOff: this.#leftOff };
  }
}
