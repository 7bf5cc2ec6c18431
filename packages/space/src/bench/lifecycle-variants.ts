// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { probeCriu } from "../host/criu.ts";
import { searchRunsc } from "../host/runsc.ts";

/** A way of keeping what a paused sandbox has. */
export interface LifecycleVariant {
  readonly name: "namespace" | "namespace-criu" | "gvisor";
  readonly substrate: "namespace" | "gvisor";
  readonly memory: "frozen" | "criu";
  /** Whether memory goes to another worker; without, it stays frozen on its own. */
  readonly movesMemory: boolean;
}

export interface LifecycleVariants {
  readonly here: readonly LifecycleVariant[];
  /** Those that cannot be measured on this host, and why. */
  readonly missing: readonly { readonly name: LifecycleVariant["name"]; readonly reason: string }[];
}

const frozen: LifecycleVariant = {
  name: "namespace",
  substrate: "namespace",
  memory: "frozen",
  movesMemory: false,
};
const criu: LifecycleVariant = {
  name: "namespace-criu",
  substrate: "namespace",
  memory: "criu",
  movesMemory: true,
};
const gvisor: LifecycleVariant = { name: "gvisor", substrate: "gvisor", memory: "frozen", movesMemory: true };

/** Looks for CRIU and runsc; has CRIU save and restore a process, which takes about a second. */
export async function findVariants(): Promise<LifecycleVariants> {
  const here = [frozen];
  const missing: LifecycleVariants["missing"][number][] = [];
  const { found, fault } = await probeCriu();
  if (found !== undefined && fault === undefined) here.push(criu);
  else missing.push({ name: criu.name, reason: fault ?? "no usable CRIU: ./space doctor --install" });
  if ((await searchRunsc()).found !== undefined) here.push(gvisor);
  else missing.push({ name: gvisor.name, reason: "no usable runsc: ./space doctor --install" });
  return { here, missing };
}
