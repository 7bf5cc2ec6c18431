// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Violation } from "./ledger.ts";

/** What a counting program said to its client: every number once and in order, and nobody else's. */
export class Counting {
  readonly #line: string;
  #rest = "";
  #numbers = 0;
  #violation: Violation<"wrong delivery" | "stream"> | undefined;

  /** `line` is what goes before each number. */
  constructor(line: string) {
    this.#line = line;
  }

  get numbers(): number {
    return this.#numbers;
  }

  get violation(): Violation<"wrong delivery" | "stream"> | undefined {
    return this.#violation;
  }

  take(text: string): void {
    const lines = `${this.#rest}${text}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#check(line);
  }

  #check(line: string): void {
    const wanted = this.#numbers + 1;
    if (line === `${this.#line} ${wanted}`) this.#numbers = wanted;
    else {
      const isOthers = /^count \S+ \d+ \d+$/.test(line) && !line.startsWith(`${this.#line} `);
      const what = `${JSON.stringify(line.slice(0, 120))} where ${this.#line} ${wanted} comes next`;
      this.#violation ??= { kind: isOthers ? "wrong delivery" : "stream", what };
    }
  }
}
