// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export type CriuVerdict =
  /** Passed the conformance suite. */
  | { readonly kind: "tested" }
  | { readonly kind: "untested" }
  | { readonly kind: "refused"; readonly reason: string };

/** What `criu --version` says; undefined when that is no version. */
export function readCriuVersion(output: string): string | undefined {
  return /^Version: ([0-9]+\.[0-9]+(?:\.[0-9]+)?)$/m.exec(output)?.[1];
}

/** What is known of a version from having run it. */
export function judgeCriu(version: string): CriuVerdict {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < 4) {
    return refused("it cannot start on current kernels, whose vDSO it does not know");
  }
  if (major === 4 && minor < 2) {
    return refused(
      "it hangs where breakpoints of the processor's never fire, and cannot save a process that listens on TCP",
    );
  }
  return version === "4.2.1" ? { kind: "tested" } : { kind: "untested" };
}

function refused(reason: string): CriuVerdict {
  return { kind: "refused", reason };
}
