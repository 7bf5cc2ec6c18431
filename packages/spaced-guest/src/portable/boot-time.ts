// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { libc } from "./libc.ts";

const clockBoottime = 7;
const clockGettime = libc.func("int clock_gettime(int clock, _Out_ int64_t *time)");
const time = new BigInt64Array(2);

/** CLOCK_BOOTTIME: since the host booted, its sleep included. */
export function bootTimeNs(): bigint {
  clockGettime(clockBoottime, time);
  const [seconds = 0n, nanoseconds = 0n] = time;
  return seconds * 1_000_000_000n + nanoseconds;
}
