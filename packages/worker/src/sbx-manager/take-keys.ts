// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { refusalFacts } from "@space/model";
import type { WorkerParts } from "./parts.ts";

/** takes a bundle from wherever it came, and records what became of it. Throws what the keys throw. */
export function takeKeys({ keys, audit }: Pick<WorkerParts, "keys" | "audit">, bundle: string): void {
  const held = keys.version;
  try {
    if (keys.replace(bundle)) audit.record("keys/replaced", { version: keys.version });
  } catch (error) {
    audit.record("keys/refused", { held, ...refusalFacts(error) });
    throw error;
  }
}
