// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { BootClock } from "@space/model";
import { bootTimeMs } from "@space/platform-linux";

/** The host's time. */
export const systemClock: BootClock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  bootMs: bootTimeMs,
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};
