// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

declare const brand: unique symbol;

/** A value that only its own `parseX` or `newX` can make. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** The end of an exhaustive `switch`: reaching it is a bug, never an outcome. */
export function unreachable(value: never): never {
  throw new TypeError(`unreachable: ${String(value)}`);
}
