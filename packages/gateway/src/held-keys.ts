// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/**
 * the gateway's verification bundle: durable, never rolled back. The gateway decides nothing by it; it only keeps
 * from presenting what every worker would deny.
 */
export interface HeldKeys {
  /** 0 before the first bundle. */
  readonly version: number;
  /** Durable when it returns. Throws `bundle/refused`, `bundle/rollback` or `store/failed`. */
  replace(bundle: string): boolean;
  holds(kid: string): boolean;
}
