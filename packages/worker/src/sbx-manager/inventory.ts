// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { manifestDigest } from "@space/capability";
import type { WorkerInventory } from "@space/model";
import type { WorkerParts } from "./parts.ts";

/** What this worker serves, and what it keeps frozen. */
export function inventoryOf({
  executions,
  records,
}: Pick<WorkerParts, "executions" | "records">): WorkerInventory {
  const installed = records
    .all()
    .filter(({ state, identity }) => state === "installed" && executions.find(identity.activation.id))
    .map(({ identity }) => identity);
  const frozen = executions
    .all()
    .flatMap(({ phase, manifest, identity }) =>
      phase === "kept" && manifest !== null
        ? [{ sandboxId: identity.sandboxId, manifest: manifestDigest(manifest) }]
        : [],
    );
  return { installed, frozen };
}
