// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** What can go wrong in a world. Each is counted when it has had an effect on something, not when it was thrown. */
export const faultKinds = [
  "delay",
  "loss",
  "duplication",
  "reordering",
  "partition",
  "link-break",
  "clock-skew",
  "crash-gateway",
  "crash-worker",
  "crash-worker-host",
  "crash-control-plane",
  "crash-inside-a-write",
  "restart-from-disk",
  "address-reuse",
  "slow-keys",
  "key-rotation",
  "key-revocation",
  "tenant-key-rotation",
  "store-failure",
  "substrate-failure",
  "guest-exit",
  "object-damage",
  "replica-hand-over",
  "pod-replacement",
] as const;
export type FaultKind = (typeof faultKinds)[number];

/** How often each fault has landed. */
export class FaultCounts {
  readonly #counts = new Map<FaultKind, number>();

  landed(kind: FaultKind, times = 1): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + times);
  }

  of(kind: FaultKind): number {
    return this.#counts.get(kind) ?? 0;
  }

  toJson(): Readonly<Record<FaultKind, number>> {
    return Object.fromEntries(faultKinds.map((kind) => [kind, this.of(kind)])) as Record<FaultKind, number>; // cast: every kind is there
  }
}

/** The kinds of fault that a run was spared. */
export function neverLanded(landed: Readonly<Record<FaultKind, number>>): readonly FaultKind[] {
  return faultKinds.filter((kind) => landed[kind] === 0);
}
