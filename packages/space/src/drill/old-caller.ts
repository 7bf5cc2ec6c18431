// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import type { RouteEntry } from "@space/model";
import type { FrameLink } from "@space/wire";
import { presentOver } from "../demo/worker-probe.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";

/** What became of requests with one capability. */
export interface Tally {
  /** Answered, or broken off. */
  requests: number;
  admitted: number;
  /** When the last admitted one was asked, by the host's wall clock. 0: none was. */
  lastAdmittedMs: number;
}

export type Asked = Readonly<Tally>;

const everyMs = 10;
const enough = 20;
const longestMs = 60_000;

/** Presents one capability to its worker over and over, as a gateway would that knows no better, and counts as it goes. */
export async function presentAgainAndAgain(
  presenting: { readonly link: FrameLink; readonly entry: RouteEntry; readonly goesOn: () => boolean },
  tally: Tally,
): Promise<Asked> {
  const { link, entry, goesOn } = presenting;
  const presented = {
    sandbox: entry.route.identity.sandboxId,
    capability: entry.capability,
    target: { purpose: "control" },
    path: "/files?path=/etc/hostname",
  } as const;
  while (goesOn()) {
    const askedMs = systemClock.wallMs();
    const verdict = await presentOver(link, presented, systemRandom).then(
      (answer) => answer.verdict,
      () => "broken",
    );
    tally.requests += 1;
    if (verdict === "match") {
      tally.admitted += 1;
      tally.lastAdmittedMs = askedMs;
    }
    await pause(everyMs);
  }
  return tally;
}

/** The same for so long, and until enough has been answered to say something of it. */
export function presentFor(
  ms: number,
  presented: { readonly link: FrameLink; readonly entry: RouteEntry },
): Promise<Asked> {
  const startedMs = systemClock.monotonicMs();
  const tally: Tally = { requests: 0, admitted: 0, lastAdmittedMs: 0 };
  const goesOn = (): boolean => {
    const tookMs = systemClock.monotonicMs() - startedMs;
    return tookMs < ms || (tally.requests < enough && tookMs < longestMs);
  };
  return presentAgainAndAgain({ ...presented, goesOn }, tally);
}
