// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What a client was told of one operation. */
export type Told =
  | { readonly kind: "served"; readonly text: string; readonly memoryMoved: boolean }
  /** A documented answer, after which a caller tries again, or looks. `nothingHappened`: that is part of what it says. */
  | { readonly kind: "again"; readonly what: string; readonly nothingHappened: boolean }
  /** The sandbox was lost with its worker. `canReturn`: it has a snapshot. */
  | { readonly kind: "lost"; readonly canReturn: boolean }
  | { readonly kind: "missing" }
  | { readonly kind: "error"; readonly what: string };
