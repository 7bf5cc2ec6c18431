// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

/** Which runsc it is. Debian has built one release with several compilers, and not all of the results work. */
export interface RunscBuild {
  /** As it says itself, e.g. `20240729.0`. */
  readonly release: string;
  /** The compiler's, e.g. `1.22.1`. */
  readonly go: string;
}

export type BuildVerdict =
  /** Passed the conformance suite and long runs of checkpoints. */
  | { readonly kind: "tested" }
  | { readonly kind: "untested" }
  | { readonly kind: "refused"; readonly reason: string };

const versionLimitMs = 10_000;
/** How the linker marks what it notes of a build: 14 bytes, pointer size, flags; with flag 2 a text follows at 32. */
const buildMark = Buffer.from("\xff Go buildinf:", "latin1");
const inlineFlag = 2;
const textOffset = 32;

/** Asks the program who it is. Undefined when it is no runsc, or cannot be run. */
export async function readRunscBuild(path: string): Promise<RunscBuild | undefined> {
  try {
    const options = { timeout: versionLimitMs, env: {} };
    const { stdout } = await promisify(execFile)(path, ["--version"], options);
    const release = /^runsc version (?:release-|0\.0~)?([0-9]{8}(?:\.[0-9]+)?)/m.exec(stdout)?.[1];
    const go = goVersion(await readFile(path));
    return release === undefined || go === undefined ? undefined : { release, go };
  } catch {
    return undefined; // absent, not executable, or silent: that is the answer
  }
}

/** The version of the compiler, as noted in a program that Go's linker has made. */
export function goVersion(program: Buffer): string | undefined {
  for (let at = program.indexOf(buildMark); at >= 0; at = program.indexOf(buildMark, at + 1)) {
    if (((program[at + 15] ?? 0) & inlineFlag) === 0) continue;
    const length = program[at + textOffset] ?? 0; // a varint; below 128 it is one byte
    const text = program.subarray(at + textOffset + 1, at + textOffset + 1 + length).toString("latin1");
    const version = /^go([0-9]+\.[0-9]+(?:\.[0-9]+)?)/.exec(text)?.[1];
    if (version !== undefined) return version;
  }
  return undefined;
}

/** What is known of a build from having run it. */
export function judgeBuild({ release, go }: RunscBuild): BuildVerdict {
  const year = Number(release.slice(0, 4));
  if (year < 2024) {
    return refused(
      "a process in the sandbox that listens on TCP makes its checkpoint fail, which ends the sandbox",
    );
  }
  if (isAtLeast(go, [1, 25]) && release.startsWith("2024")) {
    return refused(
      "it was built with a newer Go than it can run on: one restored sandbox in four dies of a panic",
    );
  }
  return release.startsWith("20240729") ? { kind: "tested" } : { kind: "untested" };
}

/** One text for a build: images are restored by the very build that has made them. */
export function buildText({ release, go }: RunscBuild): string {
  return `runsc ${release} go${go}`;
}

function refused(reason: string): BuildVerdict {
  return { kind: "refused", reason };
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [found = 0, foundMinor = 0] = version.split(".").map(Number);
  return found > major || (found === major && foundMinor >= minor);
}
