// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type EndedLookup,
  type HeldSlot,
  isDoubted,
  type Rejection,
  repairBy,
  slotAfter,
} from "@space/gateway/slot-decisions";
import { type IdentityVerdict, isSpaceError, mayEnter } from "@space/model";
import { orderOf, retires } from "@space/worker/record-order";
import { type LeaseDecisions, leaseDecisions, mayFollow, type Predecessor } from "./control-decisions.ts";
import type { Phase } from "./core-state.ts";
import { certificateOf, identityOf, type Place, recordOf, verdictOn } from "./identities.ts";

/** A worker's record, as the model holds it; generation 0: none. */
export interface HeldRecord {
  readonly generation: number;
  readonly isRetired: boolean;
  readonly worker: number;
}

/** What the product's own code decides. The model asks it, and decides none of this itself. */
export interface Decisions {
  /** The lifecycle's table: whether a sandbox of that state may enter the other. */
  readonly enters: (from: Phase, to: Exclude<Phase, "none">) => boolean;
  /** whether a certificate becomes the record, is there already, or is refused. */
  readonly install: (record: HeldRecord, place: Place) => "new" | "same" | "refused";
  /** whether a retirement makes the record a tombstone. */
  readonly retires: (record: HeldRecord, place: Place) => boolean;
  /** */
  readonly verdict: (capability: Place, record: HeldRecord) => IdentityVerdict["kind"];
  /** */
  readonly mayFollow: (
    pending: readonly Predecessor[],
    successorOn: number,
    isOver: readonly boolean[],
  ) => boolean;
  readonly leases: LeaseDecisions;
  /** generations stand for entries and for routes: each has one. */
  readonly slotAfter: (held: HeldSlot<number> | undefined, ended: EndedLookup<number>) => SlotChange;
  /** whether a look-up that is not the newest can change a slot: asked for every case. */
  readonly olderMatters: boolean;
  readonly isDoubted: (held: number, rejected: number) => boolean;
  readonly repairBy: (rejection: Rejection<number>) => RepairWay;
}

export type SlotChange = ReturnType<typeof slotAfter>;
export type RepairWay = ReturnType<typeof repairBy>;

/** Asks what is slow, or answers later, once for every case; the rest is asked each time that it is needed. */
export async function productDecisions(): Promise<Decisions> {
  const follows = await tableOfFollowing();
  const verdicts = new Map<number, IdentityVerdict["kind"]>();
  const installs = new Map<number, "new" | "same" | "refused">();
  const retirements = new Map<number, boolean>();
  return {
    enters: (from, to) => (from === "none" ? to === "creating" : mayEnter(from, to)),
    install: (record, place) => once(installs, caseOf(record, place), () => install(record, place)),
    retires: (record, place) => once(retirements, caseOf(record, place), () => isRetired(record, place)),
    verdict: (capability, record) =>
      once(verdicts, caseOf(record, capability), () => verdictOn(capability, recordOf(record))),
    mayFollow: (pending, successorOn, isOver) => {
      const answer = follows.get(followingCase(pending, successorOn, isOver));
      if (answer === undefined) throw new TypeError("a case that was not asked for");
      return answer;
    },
    leases: await leaseDecisions(),
    slotAfter,
    olderMatters: olderMatters(),
    isDoubted,
    repairBy,
  };
}

function once<T>(known: Map<number, T>, of: number, decide: () => T): T {
  const before = known.get(of);
  if (before !== undefined) return before;
  const answer = decide();
  known.set(of, answer);
  return answer;
}

function caseOf(record: HeldRecord, place: Place): number {
  const held = (record.generation * 2 + (record.isRetired ? 1 : 0)) * 2 + record.worker;
  return (held * 4 + place.generation) * 2 + place.worker;
}

function install(held: HeldRecord, place: Place): "new" | "same" | "refused" {
  const record = recordOf(held);
  if (record === undefined) return "new";
  const { certificate, token } = certificateOf(place);
  try {
    return orderOf(record, certificate, token) === "same" ? "same" : "new";
  } catch (error) {
    if (isSpaceError(error)) return "refused"; // nothing changes
    throw error;
  }
}

function isRetired(held: HeldRecord, place: Place): boolean {
  const record = recordOf(held);
  return record !== undefined && retires(record, identityOf(place));
}

/** Every set of unacknowledged retirements of two earlier generations, on each successor's worker, with each lease over or not. */
async function tableOfFollowing(): Promise<Map<number, boolean>> {
  const table = new Map<number, boolean>();
  const owed = [undefined, 0, 1] as const;
  const flags = [false, true] as const;
  for (const first of owed)
    for (const second of owed)
      for (const successorOn of [0, 1])
        for (const over of flags.flatMap((a) => flags.map((b) => [a, b]))) {
          const pending = [first, second].flatMap((worker, at) =>
            worker === undefined ? [] : [{ generation: at + 1, worker }],
          );
          table.set(followingCase(pending, successorOn, over), await mayFollow(pending, successorOn, over));
        }
  return table;
}

function followingCase(
  pending: readonly Predecessor[],
  successorOn: number,
  isOver: readonly boolean[],
): number {
  const owed = pending.reduce((all, { generation, worker }) => all + (worker + 1) * 3 ** (generation - 1), 0);
  return (owed * 2 + successorOn) * 4 + (isOver[0] === true ? 2 : 0) + (isOver[1] === true ? 1 : 0);
}

function olderMatters(): boolean {
  const slots = [
    undefined,
    ...[1, 2, 3].flatMap((cached) => [true, false].map((doubted) => ({ cached, doubted }))),
  ];
  return slots.some((held) =>
    [undefined, 1, 2, 3].some((expected) =>
      (["found", "nothing", "unavailable"] as const).some(
        (end) => slotAfter(held, { isNewest: false, expected, end }) !== "keep",
      ),
    ),
  );
}
