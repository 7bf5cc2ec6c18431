// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { LoadTarget } from "./load-generator.ts";

/** Something that answers the same request, and what is to be known about it. */
export interface Contender {
  readonly name: string;
  /** For a person: what it is. */
  readonly what: string;
  /** Made anew before each sample: tokens may have to be fresh. */
  readonly target: (seconds: number) => Promise<LoadTarget> | LoadTarget;
  /** Whose CPU time is counted, by role. */
  readonly processes: Readonly<Record<string, readonly number[]>>;
}

/** The file that every contender serves. */
export const servedFile = {
  path: "/home/user/bench.txt",
  content: Buffer.from("SPACE measures what authorisation costs.\n".repeat(25).slice(0, 1024)),
} as const;

/** The request for it, as E2B's clients make it. */
export const servedFileUrlPath: string = `/files?path=${encodeURIComponent(servedFile.path)}&username=user`;
