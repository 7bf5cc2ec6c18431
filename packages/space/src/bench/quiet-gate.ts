// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { busySeconds } from "./machine.ts";

export interface GateLimits {
  /** The machine is quiet when fewer cores than this were busy over the window. */
  readonly busyCores: number;
  readonly windowMs: number;
  /** Longest wait before one sample. */
  readonly waitMs: number;
  /** Longest wait of all samples together: a machine that is never quiet makes no run endless. */
  readonly totalWaitMs: number;
}

export const gateLimits: GateLimits = { busyCores: 0.2, windowMs: 250, waitMs: 3_000, totalWaitMs: 180_000 };

export interface GatePorts {
  /** Seconds of work that all cores together have done since the machine started. */
  readonly busySeconds: () => number;
  readonly monotonicMs: () => number;
  readonly pause: (delayMs: number) => Promise<unknown>;
}

const systemPorts: GatePorts = { busySeconds, monotonicMs: () => performance.now(), pause };

/**
 * Holds each sample back until the machine does nothing else, within limits; then the sample is taken anyway and marked.
 * Without it the same program has been measured at a third of its speed.
 */
export class QuietGate {
  readonly #limits: GateLimits;
  readonly #ports: GatePorts;
  #leftMs: number;
  #loud = 0;
  #passed = 0;

  constructor(limits: GateLimits = gateLimits, ports: GatePorts = systemPorts) {
    this.#limits = limits;
    this.#ports = ports;
    this.#leftMs = limits.totalWaitMs;
  }

  /** How many samples were let through, and how many of them while the machine was busy. */
  get counts(): { readonly passed: number; readonly loud: number } {
    return { passed: this.#passed, loud: this.#loud };
  }

  /** Resolves when the machine is quiet, or the wait is over. True: it was quiet. */
  async quiet(): Promise<boolean> {
    const { busyCores, waitMs } = this.#limits;
    const beganMs = this.#ports.monotonicMs();
    const mostMs = Math.min(waitMs, this.#leftMs);
    let isQuiet = false;
    let waitedMs = 0;
    do {
      isQuiet = (await this.#busyCores()) < busyCores;
      waitedMs = this.#ports.monotonicMs() - beganMs;
    } while (!isQuiet && waitedMs < mostMs);
    this.#leftMs = Math.max(0, this.#leftMs - waitedMs);
    this.#passed += 1;
    if (!isQuiet) this.#loud += 1;
    return isQuiet;
  }

  async #busyCores(): Promise<number> {
    const { monotonicMs, busySeconds: read, pause: wait } = this.#ports;
    const [fromMs, fromSeconds] = [monotonicMs(), read()];
    await wait(this.#limits.windowMs);
    return ((read() - fromSeconds) * 1000) / Math.max(1, monotonicMs() - fromMs);
  }
}
