// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Generation } from "./generation.ts";
import type { Digest } from "./ids.ts";

/**
 * one object of a sealed chain: the certificates and manifests that were signed after `previous` ended, up to the
 * certificate of generation `through`.
 */
export interface SealedSegment {
  readonly digest: Digest;
  readonly previous: Digest | null;
  /** The generation whose certificate `previous` ends with; 0 at the beginning. */
  readonly after: bigint;
  readonly through: Generation;
  /** How many objects were added one by one since the last that takes the place of many; 0 for such a one. */
  readonly run: number;
}
