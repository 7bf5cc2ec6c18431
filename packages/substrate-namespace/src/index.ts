// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
export { seccompProgram } from "./seccomp-bpf.ts";
