// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of a caller on a worker's side of a cut: as a gateway that was cut off with it.

import { join } from "node:path";
import type { RouteEntry } from "@space/model";
import { loadOrCreateMesh } from "@space/mtls";
import { FrameLink } from "@space/wire";
import { Mesh } from "../embedded/mesh.ts";
import { systemClock } from "../host/system-clock.ts";
import { presentAgainAndAgain, type Tally } from "./old-caller.ts";
import { ProcessChannel } from "./process-channel.ts";
import { unheard } from "./unheard.ts";

const tallies: Tally[] = [];

new ProcessChannel(
  { on: (event, listener) => process.on(event, listener), send: (message) => process.send?.(message) },
  {
    begin: (entries) => begin(entries as readonly RouteEntry[]), // cast: our own drill's word
    tallies: () => Promise.resolve(tallies),
  },
);

process.on("disconnect", () => process.exit(0));

async function begin(entries: readonly RouteEntry[]): Promise<void> {
  const [, , data = ""] = process.argv;
  const tls = join(data, "tls");
  const nowMs = systemClock.wallMs();
  const mesh = await Mesh.join({
    tls,
    nowMs,
    authority: await loadOrCreateMesh({ directory: tls, nowMs }),
    audit: unheard,
  });
  for (const entry of entries) {
    const { endpoint } = entry.route;
    const link = new FrameLink(await mesh.dial(endpoint.workerId, endpoint), { dialled: true });
    const tally: Tally = { requests: 0, admitted: 0, lastAdmittedMs: 0 };
    tallies.push(tally);
    void presentAgainAndAgain({ link, entry, goesOn: () => true }, tally);
  }
}
