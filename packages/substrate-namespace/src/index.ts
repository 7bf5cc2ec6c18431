// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { freeBytes } from "./disk-watch.ts";
export { connectLauncher, type LauncherCommand } from "./launcher-process.ts";
export type { LauncherKind } from "./launchers.ts";
export { NamespaceSubstrate } from "./namespace-substrate.ts";
export type { NamespaceSubstrateOptions } from "./options.ts";
export { seccompProgram } from "./seccomp-bpf.ts";
export { buildSkeleton } from "./skeleton.ts";
