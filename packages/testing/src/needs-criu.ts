// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync } from "node:fs";
import { nativeLauncherPath } from "@space/spaced-guest";
import { findCriu, tryCriu } from "@space/substrate-namespace";
import { needsRoot } from "./needs-root.ts";
import { runscTools } from "./needs-runsc.ts";

/** A reason to skip, or false: for tests that save guests of the namespace driver with their memory. */
export const needsCriu: string | false =
  needsRoot ||
  (!existsSync(nativeLauncherPath) && "no C compiler built the guest's program") ||
  (await reason());

async function reason(): Promise<string | false> {
  const { found } = await findCriu(runscTools);
  if (found === undefined) return "there is no usable CRIU: ./space doctor --install";
  return (await tryCriu(found)) ?? false;
}
