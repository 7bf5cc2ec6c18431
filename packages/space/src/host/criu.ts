// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import {
  type CriuProgram,
  type CriuSearch,
  findCriu,
  installCriu,
  requireCriu,
  tryCriu,
} from "@space/substrate-namespace";
import { tools } from "./runsc.ts";

const installLimitMs = 300_000;

/** What there is of CRIU here, and whether it works. */
export interface CriuState extends CriuSearch {
  /** Why the one that was found does not work on this host; undefined when it does, or when there is none. */
  readonly fault: string | undefined;
}

/** Finds it, and has it save and restore a process. Takes about a second. */
export async function probeCriu(): Promise<CriuState> {
  const search = await findCriu(tools);
  return { ...search, fault: search.found === undefined ? undefined : await tryCriu(search.found) };
}

/** Throws `host/unfit` where there is none that works here. */
export async function requireWorkingCriu(): Promise<void> {
  const fault = await tryCriu(await requireCriu(tools));
  if (fault !== undefined)
    throw new SpaceError("host/unfit", {
      problem: `CRIU does not work here: ${fault}`,
      remedy: "leave --memory criu out",
    });
}

/** Fetches it where none that may be used is found. Throws `host/unfit`. */
export function ensureCriu(): Promise<{ readonly program: CriuProgram; readonly installed: boolean }> {
  return installCriu(tools, AbortSignal.timeout(installLimitMs));
}
