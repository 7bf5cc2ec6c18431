// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { GvisorSubstrate } from "./gvisor-substrate.ts";
export type { GvisorSubstrateOptions } from "./options.ts";
export { type BuildVerdict, buildText, type RunscBuild } from "./runsc-build.ts";
export {
  findRunsc,
  installRunsc,
  type RefusedProgram,
  type RunscProgram,
  type RunscSearch,
  requireRunsc,
} from "./runsc-program.ts";
