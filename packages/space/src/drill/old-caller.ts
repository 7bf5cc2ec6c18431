// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import type { RouteEntry } from "@space/model";
import type { FrameLink } from "@space/wire";
import { presentOver } from "../demo/worker-probe.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";

/** What became of requests with one capability. */
export interface Asked {
  readonly requests: number;
  readonly admitted: number;
  /** When the last admitted one was asked, by the host's wall clock. 0: none was. */
  readonly lastAdmittedMs: number;
}

const everyMs = 10;

/** Presents one capability to its worker over and over, as a gateway would that knows no better. */
export async function presentAgainAndAgain(presenting: {
  readonly link: FrameLink;
  readonly entry: RouteEntry;
  /** Until then, by the monotonic clock. */
  readonly untilMs: number;
}): Promise<Asked> {
  const { link, entry, untilMs } = presenting;
  const presented = {
    sandbox: entry.route.identity.sandboxId,
    capability: entry.capability,
    target: { purpose: "control" },
    path: "/files?path=/home/user/beat",
  } as const;
  let [requests, admitted, lastAdmittedMs] = [0, 0, 0];
  while (systemClock.monotonicMs() < untilMs) {
    const askedMs = systemClock.wallMs();
    requests += 1;
    const verdict = await presentOver(link, presented, systemRandom).then(
      (answer) => answer.verdict,
      () => "broken",
    );
    if (verdict === "match") {
      admitted += 1;
      lastAdmittedMs = askedMs;
    }
    await pause(everyMs);
  }
  return { requests, admitted, lastAdmittedMs };
}
