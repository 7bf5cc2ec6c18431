// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Server } from "node:http";
import type { Http2SecureServer } from "node:http2";
import {
  type AuditSink,
  type BootClock,
  type Clock,
  type KeyBundleReceiver,
  type Random,
  type RouteSource,
  refusalFacts,
} from "@space/model";
import { AdmissionIds } from "./admission-ids.ts";
import type { ApiHandler } from "./api-handler.ts";
import { type GatewayCounts, newCounts } from "./counters.ts";
import { Destinations } from "./destination.ts";
import type { HeldKeys } from "./held-keys.ts";
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
  readonly clock: BootClock;
  readonly random: Random;
  readonly audit: AuditSink;
  readonly keys: HeldKeys;
}

export interface Gateway extends KeyBundleReceiver {
  readonly limits: GatewayLimits;
  readonly counts: GatewayCounts;
  /** Requests to sandboxes under way. */
  readonly underWay: number;
  /** Serves a server's requests from now on; once per server. */
  attach(server: Server | Http2SecureServer): void;
  /**
   * as for every receiver; and when it resolves, no capability of a key that the bundle leaves out is held here or
   * on its way to a worker that answers. Throws `bundle/refused`, `bundle/rollback` or `store/failed`.
   */
  replaceKeys(bundle: string): Promise<void>;
  /**
   * the links are dialled with another certificate from now on: the entries of the old one are emptied, and what is
   * under way on the old links goes on.
   */
  useCertificate(presenter: string): void;
  /** Ends what is under way and every link. The servers are the caller's to close. */
  close(): void;
}

/** A worker that has not received for so long what it was sent is not waited for. */
const decisionWaitMs = 5000;
/** How often running operations and the cache are looked over. */
const sweepEveryMs = 5000;

/** Creates the public ingress. It holds no key: it presents what the control plane signed, and decides no identity. */
export function createGateway(options: GatewayOptions, ports: GatewayPorts): Gateway {
  const limits = gatewayLimits(options.limits);
  const { links, clock, audit, random, routes, api, keys } = ports;
  const counts = newCounts();
  const cache = new RouteCache(
    { presenter: options.presenter, limits },
    { routes, clock, audit, counts, keys },
  );
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
    farewells: new Set(),
    limits,
  };
  const ingress = new Ingress(core, { destinations: new Destinations(), limits, api });
  let cancelSweep = clock.after(sweepEveryMs, sweep);

  function sweep(): void {
    const nowMs = clock.bootMs();
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
    async replaceKeys(bundle) {
      const held = keys.version;
      try {
        if (!keys.replace(bundle)) return;
      } catch (error) {
        audit.record("keys/refused", { held, ...refusalFacts(error) });
        throw error;
      }
      audit.record("keys/replaced", { version: keys.version });
      cache.dropOutdated();
      // A worker decides on the head when it comes, so what it has received it has decided.
      await within(clock, decisionWaitMs, links.received());
    },
    useCertificate(presenter) {
      cache.usePresenter(presenter);
      links.renew();
    },
    close() {
      cancelSweep();
      for (const operation of [...live]) operation.close();
      for (const farewell of [...core.farewells]) farewell.close();
      links.close();
    },
  };
}

/** Resolves with the promise, or when the limit has passed. */
function within(clock: Clock, limitMs: number, promise: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(limitMs, resolve);
    void promise.then(() => {
      cancel();
      resolve();
    });
  });
}
