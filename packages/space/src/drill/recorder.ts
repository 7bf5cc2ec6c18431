// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** When each generation's program beat, by the host's wall clock, in the order in which the generations appeared. */
export type Beats = readonly (readonly number[])[];

/** A program that acts ten times a second: it writes down, in this file of its user's, and says, when. */
export function heartbeat(file: string): string {
  return `while :; do date +%s%3N; sleep 0.1; done | tee -a /home/user/${file}`;
}

const lookEveryMs = 50;

/** Sees from outside when guests act: reads what their programs write, in their layers on the host, while they are there. */
export class Recorder implements Disposable {
  readonly #data: string;
  readonly #file: string;
  readonly #texts = new Map<string, string>();
  readonly #timer: NodeJS.Timeout;

  /** Of what is written into the file of this name, in the system that keeps its data there. */
  constructor(data: string, file: string) {
    this.#data = data;
    this.#file = file;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
  }

  beats(): Beats {
    this.#look();
    return [...this.#texts.values()].map((text) => text.split("\n").filter(Boolean).map(Number));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** A layer that is gone keeps what was seen of it. */
  #look(): void {
    const pattern = join(this.#data, "**/activations/*/upper/home/user", this.#file);
    for (const path of globSync(pattern)) {
      try {
        this.#texts.set(path, readFileSync(path, "utf8"));
      } catch {
        // removed since it was listed
      }
    }
  }
}
