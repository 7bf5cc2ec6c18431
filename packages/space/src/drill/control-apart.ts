// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KeyBundleReceiver } from "@space/model";
import { loadOrCreateMesh } from "@space/mtls";
import { withEnding } from "../bench/ending.ts";
import { answerNothing, startGateway } from "../embedded/gateway-part.ts";
import { Mesh } from "../embedded/mesh.ts";
import { systemClock } from "../host/system-clock.ts";
import { ControlProcess } from "./control-process.ts";
import { type ServedGateway, serve } from "./drill-system.ts";
import { unheard } from "./unheard.ts";
import { WatchedRoutes } from "./watched-routes.ts";

/** A gateway in this process, its control plane in another, and what is between them. */
export interface ApartStage {
  readonly control: ControlProcess;
  readonly served: ServedGateway;
  readonly routes: WatchedRoutes;
}

/**
 * Runs `drill` with a control plane and its workers below a process of their own, on a throw-away directory, and a gateway
 * in this one. Everything of it is gone afterwards, also after an interrupt.
 */
export async function withControlApart<T>(
  workers: number,
  drill: (stage: ApartStage) => Promise<T>,
): Promise<T> {
  return withEnding(async (ending) => {
    const data = mkdtempSync(join(tmpdir(), "space-drill-"));
    ending.add(() => rmSync(data, { recursive: true, force: true }));
    const control = await ControlProcess.start({ data, workers });
    ending.add(() => control.stop());
    const tls = join(data, "tls");
    const nowMs = systemClock.wallMs();
    const authority = await loadOrCreateMesh({ directory: tls, nowMs });
    const mesh = await Mesh.join({ tls, authority, nowMs, audit: unheard });
    const routes = new WatchedRoutes(control.routes);
    const rootKey = readFileSync(join(data, "control/root.pub"), "utf8").trim();
    const folder = mkdtempSync(join(data, "gateway-"));
    const asking = { routes, attachGateway: (gateway: KeyBundleReceiver) => control.attachGateway(gateway) };
    const options = { folder, rootKey, api: answerNothing };
    const served = await serve(await startGateway(options, { control: asking, mesh, audit: unheard }));
    ending.add(() => served.close());
    return drill({ control, served, routes });
  });
}
