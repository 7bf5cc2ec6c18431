// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Mutant } from "./mutant.ts";

const rows = "testing/src/memory-sandbox-rows.ts";

/** What can be wrong where one replica of the control plane takes over from another. */
export const replicaMutants: readonly Mutant[] = [
  {
    name: "same-attempt",
    fault: "R-3: a replica that takes over a start drives it on as the attempt of the one before",
    edits: [
      { file: rows, find: "attempt: activation.attempt + 1 }", replace: "attempt: activation.attempt }" },
    ],
  },
  {
    name: "late-replica-publishes",
    fault: "R-4: what a replica writes counts, although another has taken over since",
    edits: [
      {
        file: rows,
        find: "if (record.revision !== on.revision || !from[change.kind].includes(record.state)) return false;",
        replace:
          'const isLate = change.kind === "publish" || change.kind === "commit-pause"; if ((!isLate && record.revision !== on.revision) || !from[change.kind].includes(record.state)) return false;',
      },
    ],
  },
  {
    name: "other-leases-ignored",
    fault: "R-16: a replica knows of no lease but its own",
    edits: [
      {
        file: "control-plane/src/leases.ts",
        find: "if (lease === null || this.#seen.get(workerId) === nameOf(lease)) continue;",
        replace: "if (lease !== null) continue;",
      },
    ],
  },
  {
    name: "hand-over-cuts",
    fault: "R-4: a worker that comes to another replica ends the epochs of what it runs",
    edits: [
      {
        file: "worker/src/worker.ts",
        find: "await link.greet({",
        replace:
          'for (const record of this.#parts.records.all()) if (record.state === "installed") this.#parts.records.replace(record, { ...record, epoch: record.epoch + 1n }); await link.greet({',
      },
    ],
  },
];
