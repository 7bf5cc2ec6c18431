// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export type { LauncherKind } from "./launchers.ts";
export { NamespaceSubstrate } from "./namespace-substrate.ts";
export type { NamespaceSubstrateOptions } from "./options.ts";
export { assembleSeccomp } from "./seccomp-bpf.ts";
export { guestPolicy, highestKnownSyscall, type SyscallRule } from "./seccomp-policy.ts";
