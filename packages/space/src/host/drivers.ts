// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SubstrateName } from "@space/model";
import type { HostFact, HostView } from "./host-fitness.ts";

export interface DriverState {
  readonly name: SubstrateName;
  readonly works: boolean;
  /** What is missing, or what it cannot do here. */
  readonly why: string;
}

/** What each driver of the design would need on this host. Only `namespace` is built in so far, and the others say so. */
export function drivers(facts: readonly HostFact[], host: HostView): readonly DriverState[] {
  const missing = facts
    .filter(({ state, name }) => state === "missing" && name !== "python3")
    .map(({ name }) => name);
  const absent = (name: SubstrateName, needs: readonly [what: string, present: boolean][]): DriverState => {
    const lacks = needs.filter(([, present]) => !present).map(([what]) => what);
    const host = lacks.length === 0 ? "" : `; this host also lacks ${lacks.join(" and ")}`;
    return { name, works: false, why: `not part of this version${host}` };
  };
  return [
    {
      name: "namespace",
      works: missing.length === 0,
      why:
        missing.length === 0
          ? "memory is kept only while frozen on its worker"
          : `this host lacks ${missing.join(", ")}`,
    },
    absent("gvisor", [["runsc", host.program("runsc") !== undefined]]),
    absent("qemu", [["qemu-system-x86_64", host.program("qemu-system-x86_64") !== undefined]]),
    absent("firecracker", [["/dev/kvm", host.exists("/dev/kvm")]]),
  ];
}
