// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Mutant } from "./mutant.ts";

const activate = "worker/src/sbx-manager/activate.ts";
const bringUp = "control-plane/src/bring-up.ts";

/** What can be wrong with damaged snapshots and drivers that fail. */
export const faultMutants: readonly Mutant[] = [
  {
    name: "damage-accepted",
    fault: "statement 5: a restore takes a damaged object for what it was",
    edits: [
      {
        file: "testing/sim/plain-bytes.ts",
        find: "if (!tag.equals(sealed.subarray(-tagBytes))) return undefined;",
        replace: "",
      },
      {
        file: "snapshot/src/sealed-chunk.ts",
        find: " || (await digestOf(content)) !== digest",
        replace: "",
      },
    ],
  },
  {
    name: "restored-without-files",
    fault: "statement 5: a restore whose files cannot be read starts without them",
    edits: [
      {
        file: activate,
        find: "takeApart(source.archives.read(source.manifest.filesystem))",
        replace:
          'takeApart((async function* () { try { yield* source.archives.read(source.manifest.filesystem); } catch { yield Buffer.from("files "); } })())',
      },
    ],
  },
  {
    name: "pod-ignored",
    fault: "R-2: the comparator takes one pod of a worker for another",
    edits: [{ file: "model/src/identity.ts", find: " && a.podUid === b.podUid", replace: "" }],
  },
  {
    name: "late-start-not-retired",
    fault: "statement 2: a start that failed, or came too late, is not ended at its worker",
    edits: [
      {
        file: bringUp,
        find: "const effects = retirementsOf(record.execution);",
        replace: "const effects: SideEffect[] = [];",
      },
    ],
  },
  {
    name: "chain-collected",
    fault: "statement 5: the collector does not know that a snapshot needs its chain",
    edits: [
      {
        file: "control-plane/src/collect-snapshots.ts",
        find: "yield* await objectsOfChain(parts, stored.sandboxId, manifest.chain);",
        replace: "",
      },
    ],
  },
  {
    name: "snapshots-never-collected",
    fault: "nothing is left behind: the collector takes every killed sandbox's snapshot for needed",
    edits: [
      {
        file: "snapshot/src/collect-chunks.ts",
        find: "const isKept = !name.startsWith(beginning) || names.has(name) || modifiedMs >= beforeMs;",
        replace: "const isKept = names.size > 0 || modifiedMs >= beforeMs;",
      },
    ],
  },
];
