// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SubstrateName } from "@space/model";
import { buildText, type RunscSearch } from "@space/substrate-gvisor";
import { nativeLauncher } from "../product.ts";
import type { CriuState } from "./criu.ts";
import type { HostFact, HostView } from "./host-fitness.ts";

export interface DriverState {
  readonly name: SubstrateName;
  readonly works: boolean;
  /** What is missing, or what it cannot do here. */
  readonly why: string;
}

export interface ToolStates {
  readonly runsc: RunscSearch;
  readonly criu: CriuState;
}

/** What each driver of the design needs on this host, or that it is not built in. */
export function drivers(
  facts: readonly HostFact[],
  host: HostView,
  { runsc, criu }: ToolStates,
): readonly DriverState[] {
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
      why: missing.length === 0 ? memoryOf(criu) : `this host lacks ${missing.join(", ")}`,
    },
    gvisor(missing, host, runsc),
    absent("qemu", [["qemu-system-x86_64", host.program("qemu-system-x86_64") !== undefined]]),
    absent("firecracker", [["/dev/kvm", host.exists("/dev/kvm")]]),
  ];
}

/** What becomes of a paused sandbox's memory. */
function memoryOf({ found, refused, fault }: CriuState): string {
  const only = "memory is kept only while frozen on its worker";
  const why = refused.map(({ path, reason }) => `${path} is refused: ${reason}`);
  if (found === undefined)
    return [only, ...why, "./space doctor --install fetches a CRIU that works"].join("; ");
  const { path, version, verdict, untried } = found;
  const name = `CRIU ${version} (${path})`;
  if (fault !== undefined) return `${only}; ${name} does not work here: ${fault}`;
  const tried = verdict.kind === "tested" ? [] : [", which nobody has tried with this"];
  const others = untried.length === 0 ? [] : [`, with ${untried.join(", ")} in place of what was tried`];
  return [`${name} works here: up --memory criu saves and moves memory`, ...tried, ...others].join("");
}

function gvisor(missing: readonly string[], host: HostView, { found, refused }: RunscSearch): DriverState {
  const name = "gvisor";
  const lacks = [...missing, ...(host.exists(nativeLauncher) ? [] : ["the compiled launcher"])];
  if (lacks.length > 0) return { name, works: false, why: `this host lacks ${lacks.join(", ")}` };
  const why = refused.map(({ path, reason }) => `${path} is refused: ${reason}`);
  if (found === undefined)
    return {
      name,
      works: false,
      why: [...why, "./space doctor --install fetches a runsc that works"].join("; "),
    };
  const build = `${found.path}, ${buildText(found.build)}`;
  const tried = found.verdict.kind === "tested" ? "" : ", which nobody has tried with this";
  return {
    name,
    works: true,
    why: [`${build}${tried}`, ...why].join("; "),
  };
}
