// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { join } from "node:path";
import { importPublicKey, TrustedKeys } from "@space/capability";
import type { ControlPlane } from "@space/control-plane";
import { createGateway, createWorkerLinks, defaultWorkerLinkLimits, type Gateway } from "@space/gateway";
import type { AuditSink } from "@space/model";
import { BundleFile } from "../data/bundle-file.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { gatewayName } from "../worker/component-names.ts";
import type { Mesh } from "./mesh.ts";

/** How often the gateway's certificate is looked at. It is replaced 60 days before its end. */
const certificateLookMs = 24 * 3_600_000;

export interface GatewayPartOptions {
  /** The control plane's folder, where the gateway's bundle is kept too. */
  readonly folder: string;
  readonly rootKey: string;
  readonly api: Parameters<typeof createGateway>[1]["api"];
}

export interface GatewayPart {
  readonly gateway: Gateway;
  /** a new certificate from now on, and no entry of the old one. */
  renewCertificate(): Promise<void>;
  close(): void;
}

/** What a gateway needs of the control plane. */
export type GatewaysControl = Pick<ControlPlane, "routes" | "attachGateway">;

/** The gateway of this process. It holds the newest verification bundle when this resolves. */
export async function startGateway(
  options: GatewayPartOptions,
  { control, mesh, audit }: { control: GatewaysControl; mesh: Mesh; audit: AuditSink },
): Promise<GatewayPart> {
  const gateway = createGateway(
    { presenter: mesh.presenter },
    {
      routes: control.routes,
      links: createWorkerLinks(defaultWorkerLinkLimits, {
        dial: (endpoint, signal) => mesh.dial(endpoint.workerId, endpoint, signal),
        clock: systemClock,
      }),
      keys: new TrustedKeys({
        root: importPublicKey(options.rootKey),
        store: new BundleFile(join(options.folder, "gateway-bundle")),
      }),
      api: options.api,
      clock: systemClock,
      random: systemRandom,
      audit,
    },
  );
  audit.record("mesh/certified", { name: gatewayName, thumbprint: mesh.presenter, reason: "start" });
  const detach = await control.attachGateway(gateway);
  const renew = async (anew: boolean): Promise<void> => {
    if (!(await mesh.renewGateway(systemClock.wallMs(), anew))) return;
    gateway.useCertificate(mesh.presenter);
    const reason = "another certificate";
    audit.record("mesh/certified", { name: gatewayName, thumbprint: mesh.presenter, reason });
  };
  let cancel = systemClock.after(certificateLookMs, look);
  function look(): void {
    renew(false)
      .catch(() =>
        audit.record("upkeep/failed", { task: "gateway certificate", sandboxId: null, code: "store/failed" }),
      )
      .finally(() => {
        cancel = systemClock.after(certificateLookMs, look);
      });
  }
  return {
    gateway,
    renewCertificate: () => renew(true),
    close() {
      cancel();
      detach();
      gateway.close();
    },
  };
}

/** A gateway without an API of its own. */
export function answerNothing(...[, response]: Parameters<GatewayPartOptions["api"]>): void {
  response.statusCode = 404;
  response.end();
}
