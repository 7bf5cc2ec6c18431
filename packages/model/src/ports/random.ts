// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** Unpredictable bytes. Production draws from the kernel; tests and the simulation inject a seeded one. */
export interface Random {
  bytes(length: number): Uint8Array;
}
