// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export type { LauncherKind } from "./launchers.ts";
export { NamespaceSubstrate } from "./namespace-substrate.ts";
export type { NamespaceSubstrateOptions } from "./options.ts";
export { seccompProgram } from "./seccomp-bpf.ts";
