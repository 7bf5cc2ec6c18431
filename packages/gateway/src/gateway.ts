// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Server } from "node:http";
import type { Http2SecureServer } from "node:http2";
import type { AuditSink, Clock, Random, RouteSource } from "@space/model";
import { AdmissionIds } from "./admission-ids.ts";
import type { ApiHandler } from "./api-handler.ts";
import { type GatewayCounts, newCounts } from "./counters.ts";
import { Destinations } from "./destination.ts";
import { Ingress } from "./ingress.ts";
import { type GatewayLimits, gatewayLimits } from "./limits.ts";
import type { LiveOperation, OperationCore } from "./operation-core.ts";
import { RouteCache } from "./route-cache.ts";
import { SandboxLoad } from "./sandbox-load.ts";
import { attachServer } from "./server-attachment.ts";
import type { WorkerLinks } from "./worker-links.ts";

export interface GatewayOptions {
  /** SHA-256 thumbprint of the TLS certificate with which the links to the workers are opened. */
  readonly presenter: string;
  readonly limits?: Partial<GatewayLimits>;
}

export interface GatewayPorts {
  readonly routes: RouteSource;
  readonly links: WorkerLinks;
  readonly api: ApiHandler;
  readonly clock: Clock;
  readonly random: Random;
  readonly audit: AuditSink;
}

export interface Gateway {
  readonly limits: GatewayLimits;
  readonly counts: GatewayCounts;
  /** Requests to sandboxes under way. */
  readonly underWay: number;
  /** Serves a server's requests from now on; once per server. */
  attach(server: Server | Http2SecureServer): void;
  /** Ends what is under way and every link. The servers are the caller's to close. */
  close(): void;
}

/** How often running operations and the cache are looked over. */
const sweepEveryMs = 5000;

/** Creates the public ingress. It holds no key: it presents what the control plane signed, and decides no identity. */
export function createGateway(options: GatewayOptions, ports: GatewayPorts): Gateway {
  const limits = gatewayLimits(options.limits);
  const { links, clock, audit, random, routes, api } = ports;
  const counts = newCounts();
  const cache = new RouteCache({ presenter: options.presenter, limits }, { routes, clock, audit, counts });
  const live = new Set<LiveOperation>();
  const core: OperationCore = {
    cache,
    links,
    load: new SandboxLoad(limits),
    admissions: new AdmissionIds(random),
    clock,
    audit,
    counts,
    live,
    limits,
  };
  const ingress = new Ingress(core, { destinations: new Destinations(), limits, api });
  let cancelSweep = clock.after(sweepEveryMs, sweep);

  function sweep(): void {
    const nowMs = clock.monotonicMs();
    cache.sweep(nowMs);
    for (const operation of [...live]) operation.sweep(nowMs);
    cancelSweep = clock.after(sweepEveryMs, sweep);
  }

  return {
    limits,
    counts,
    get underWay() {
      return live.size;
    },
    attach: (server) => attachServer(server, ingress, limits),
    close() {
      cancelSweep();
      for (const operation of [...live]) operation.close();
      links.close();
    },
  };
}
