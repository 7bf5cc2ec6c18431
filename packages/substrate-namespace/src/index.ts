// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

export { ByteReader } from "./byte-reader.ts";
export {
  type CriuProgram,
  type CriuSearch,
  findCriu,
  installCriu,
  privateCriu,
  requireCriu,
} from "./criu-program.ts";
export { tryCriu } from "./criu-self-test.ts";
export { freeBytes } from "./disk-watch.ts";
export {
  archiveImageFiles,
  isTexts,
  refusedImage,
  requireFeatures,
  unpackImageFiles,
} from "./image-files.ts";
export { endingOf, LauncherLink, substrateFailure } from "./launcher-link.ts";
export type { LauncherKind } from "./launchers.ts";
export { asActivation } from "./listed-activations.ts";
export { NamespaceSubstrate } from "./namespace-substrate.ts";
export type { NamespaceSubstrateOptions } from "./options.ts";
export { processorFeatures } from "./processor-features.ts";
export { seccompProgram } from "./seccomp-bpf.ts";
export { buildSkeleton } from "./skeleton.ts";
