// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Edit } from "../mutant.ts";
import type { Guards } from "./rules.ts";

/** One rule broken: in the product's own text where the model asks the product, else in a step of the model. */
export interface PlantedFault {
  readonly name: string;
  readonly fault: string;
  /** Edits of the product, made while it is loaded. */
  readonly edits: readonly Edit[];
  readonly leavesOut: readonly (keyof Guards)[];
  /** As few generations as it needs. */
  readonly generations: number;
}

const order = "worker/src/sbx-manager/record-order.ts";
const leases = "control-plane/src/leases.ts";
const slot = "gateway/src/slot-decisions.ts";

const edited = (
  name: string,
  fault: string,
  edits: readonly Edit[],
  leavesOut: PlantedFault["leavesOut"] = [],
): PlantedFault => ({ name, fault, edits, leavesOut, generations: 2 });

const without = (guard: keyof Guards, name: string, fault: string): PlantedFault => ({
  name,
  fault,
  edits: [],
  leavesOut: [guard],
  generations: 2,
});

/** The search must find what each of these breaks. */
export const plantedFaults: readonly PlantedFault[] = [
  edited("generation-ignored", "R-13: the comparator takes any generation for the installed one", [
    {
      file: "capability/src/admit.ts",
      find: "const compared = compareIdentity(identity, record.identity);",
      replace:
        "const compared = compareIdentity({ ...record.identity, sandboxId: identity.sandboxId, placement: identity.placement }, record.identity);",
    },
  ]),
  edited(
    "older-replaces-newer",
    "R-12: an older certificate becomes the record again, whether its process runs or not",
    [
      {
        file: order,
        find: 'if (identity.generation < held.generation) throw outOfOrder("record/stale", record, certificate);',
        replace: 'if (identity.generation < held.generation) return "next-generation";',
      },
    ],
    ["checksProcess"],
  ),
  edited(
    "tombstone-comes-back",
    "R-12: a retired generation can be installed again, whether its process runs or not",
    [
      {
        file: order,
        find: 'if (record.state === "retired") throw outOfOrder("record/stale", record, certificate);',
        replace: 'if (record.state === "retired") return "next-attempt";',
      },
    ],
    ["checksProcess"],
  ),
  edited("retires-another", "R-12: a retirement ends whatever is installed of the sandbox", [
    {
      file: order,
      find: 'return compareIdentity(record.identity, identity) === "identical";',
      replace: 'return compareIdentity(record.identity, identity) !== "other-sandbox";',
    },
  ]),
  edited("predecessor-not-awaited", "R-16: a successor starts elsewhere before the stop is acknowledged", [
    {
      file: "control-plane/src/await-predecessors.ts",
      find: "if (workerId === successorOn || leases.isOver(workerId)) continue;",
      replace: 'if (workerId !== ("" as WorkerId)) continue;',
    },
  ]),
  without(
    "flushes",
    "stop-not-acknowledged",
    "a start does not wait until the stop before it is acknowledged",
  ),
  edited(
    "lease-not-waited-for",
    "R-16: a lease counts as over when its term is, whatever the clocks' drift",
    [
      {
        file: leases,
        find: "return this.#ports.clock.bootMs() - (endMs + leaseMarginMs);",
        replace: "return this.#ports.clock.bootMs() - endMs;",
      },
    ],
  ),
  edited("granted-while-owing", "R-16: a lease is renewed while a retirement is unacknowledged", [
    { file: leases, find: "if (isSettled !== true || ", replace: "if (isSettled === undefined || " },
  ]),
  edited("start-forgets-leases", "R-16: a control plane that starts again takes every lease for over", [
    {
      file: leases,
      find: "terms.set(workerId, lease.termMs);",
      replace: "terms.delete(workerId);",
    },
  ]),
  without("fences", "unfenced", "R-16: a worker without a lease starts, serves and runs on"),
  without("keepsOrder", "stop-overtakes-start", "an order to retire overtakes the start that it is to end"),
  without("writesOrders", "order-not-written", "an execution ends without an order to retire it"),
  without(
    "installsFirst",
    "install-not-awaited",
    "R-12: a sandbox is published before its worker has installed it",
  ),
  {
    ...without(
      "comparesRevision",
      "late-publish",
      "incident 32: who drove an earlier start publishes after all",
    ),
    generations: 3, // the first has failed for ever when it has
  },
  without(
    "quiesces",
    "admits-while-pausing",
    "statement 7: operations are let in after the snapshot was made",
  ),
  {
    ...without(
      "recordsAborts",
      "commit-after-abort",
      "incident 31: a pause is committed although its abort was recorded",
    ),
    generations: 1,
  },
  edited("killed-resumes", "statement 6: the lifecycle lets a killed sandbox resume", [
    {
      file: "model/src/lifecycle.ts",
      find: 'resuming: ["paused", "lost", "pausing"],',
      replace: 'resuming: ["paused", "lost", "pausing", "killed"],',
    },
  ]),
  edited("late-answer-replaces", "R-24: the answer of any look-up replaces whatever entry is there", [
    { file: slot, find: 'if (!isNewest) return "keep";', replace: "" },
    {
      file: slot,
      find: 'if (held !== undefined && held.cached !== expected) return "keep"; // R-24',
      replace: "",
    },
  ]),
  edited("repair-unconditional", "R-24: a rejection puts whatever entry is there in doubt", [
    {
      file: slot,
      find: "return held === rejected;",
      replace: "return held === rejected || held !== rejected;",
    },
  ]),
  edited("rejected-stays", "R-24: a rejected entry is presented again and again", [
    {
      file: slot,
      find: "return held === rejected;",
      replace: "return held === rejected && held !== rejected;",
    },
  ]),
  edited("stale-look-up", "R-24: a look-up that began before the rejection is taken for its repair", [
    {
      file: slot,
      find: 'return newest?.rejected === rejected ? "join" : "ask";',
      replace: 'return newest?.rejected === rejected || newest !== undefined ? "join" : "ask";',
    },
  ]),
];
