// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** where one receiver keeps its verification bundle. Writes are durable before they return. */
export interface KeyBundleStore {
  /** The newest verified bundle, as received. */
  readBundle(): { readonly version: number; readonly token: string } | undefined;
  /** Never replaces one of the same or a higher version. Returns whether it won. Throws `store/failed`. */
  writeBundle(version: number, token: string): boolean;
}
