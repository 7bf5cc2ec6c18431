// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import type {
  KeyBundleReceiver,
  RouteSource,
  SandboxService,
  WorkerControl,
  WorkerHandle,
  WorkerId,
  WorkerPresence,
} from "@space/model";
import { AccessTokens } from "./access-tokens.ts";
import { Administration } from "./api-keys.ts";
import { ConnectedWorkers } from "./connected-workers.ts";
import { type ControlLimits, defaultControlLimits } from "./limits.ts";
import type { ControlParts, ControlPlanePorts } from "./parts.ts";
import { Placements } from "./placements.ts";
import { recoverAll } from "./recovery.ts";
import { RouteResolver } from "./route-resolver.ts";
import { SandboxOperations } from "./sandbox-operations.ts";
import { type ShutDownReport, shutDownSandboxes } from "./shut-down.ts";
import { type InstallationKeys, Signer } from "./signer.ts";
import { Transitions } from "./transitions.ts";
import { Upkeep } from "./upkeep.ts";
import { AcceptedWorker, WorkerLinks } from "./worker-links.ts";
import { WorkerOrders } from "./worker-orders.ts";

export interface ControlPlaneOptions {
  /** Names the installation in what it signs. */
  readonly issuer: string;
  readonly keys: InstallationKeys;
  readonly limits?: Partial<ControlLimits>;
}

/** A worker in this very process, or in a test: the same as behind a link. */
export interface AttachedWorker {
  readonly presence: WorkerPresence;
  detach(): void;
}

export interface ControlPlane {
  readonly service: SandboxService;
  /** `asked` counts look-ups since the start. */
  readonly routes: RouteSource & { readonly asked: number };
  readonly administration: Administration;
  /** Serves a worker's link until it ends. `workerId` is the one that the peer's TLS certificate names. */
  accept(socket: Duplex, workerId: WorkerId): void;
  /** As {@link accept}, without a socket. */
  attach(workerId: WorkerId, commands: WorkerControl & KeyBundleReceiver): AttachedWorker;
  /** The workers that have said hello. */
  workers(): readonly WorkerHandle[];
  /** Stops serving, then leaves nothing at the workers: pauses what runs, files only; what cannot be paused by then is lost and says so. */
  shutDown(deadlineMs: number): Promise<ShutDownReport>;
  /** Stops upkeep and ends the links. What runs goes on at its workers. */
  close(): Promise<void>;
}

/**
 * Opens the control plane on its store: recovers what another process left in between, then begins its upkeep. The one
 * writer of sandbox and execution state. Throws `store/failed`.
 */
export async function openControlPlane(
  options: ControlPlaneOptions,
  ports: ControlPlanePorts,
): Promise<ControlPlane> {
  const parts = await gatherParts(options, ports);
  await recoverAll(parts);
  const control = new OpenControlPlane(parts);
  control.begin();
  return control;
}

async function gatherParts(options: ControlPlaneOptions, ports: ControlPlanePorts): Promise<ControlParts> {
  const limits = { ...defaultControlLimits, ...options.limits };
  const { clock, random, sandboxes, installation, audit } = ports;
  const { issuer, keys } = options;
  const signer = await Signer.open({ issuer, keys, clock, random }, installation);
  const workers = new ConnectedWorkers(clock);
  return {
    ...ports,
    owner: Buffer.from(random.bytes(12)).toString("hex"),
    limits,
    signer,
    tokens: new AccessTokens(keys.tokenSecret),
    workers,
    placements: new Placements(workers, sandboxes),
    transitions: new Transitions(),
    orders: new WorkerOrders({ sandboxes, workers, signer, clock, audit, limits }),
  };
}

class OpenControlPlane implements ControlPlane {
  readonly service: SandboxOperations;
  readonly routes: RouteResolver;
  readonly administration: Administration;
  readonly #parts: ControlParts;
  readonly #upkeep: Upkeep;
  readonly #links: WorkerLinks;

  constructor(parts: ControlParts) {
    this.#parts = parts;
    this.service = new SandboxOperations(parts);
    this.routes = new RouteResolver(parts);
    this.administration = new Administration(parts);
    this.#upkeep = new Upkeep(parts);
    this.#links = new WorkerLinks(parts);
  }

  begin(): void {
    this.#upkeep.start();
  }

  accept(socket: Duplex, workerId: WorkerId): void {
    this.#links.accept(socket, workerId);
  }

  attach(workerId: WorkerId, commands: WorkerControl & KeyBundleReceiver): AttachedWorker {
    const presence = new AcceptedWorker(this.#parts, workerId, () => presence.gone());
    presence.begin(commands, async () => undefined);
    return { presence, detach: () => presence.gone() };
  }

  workers(): readonly WorkerHandle[] {
    return this.#parts.workers.all();
  }

  async shutDown(deadlineMs: number): Promise<ShutDownReport> {
    this.service.refuseFromNowOn();
    await this.#upkeep.stop();
    return shutDownSandboxes(this.#parts, deadlineMs);
  }

  async close(): Promise<void> {
    this.service.refuseFromNowOn();
    await this.#upkeep.stop();
    await this.#parts.transitions.idle();
    await this.#parts.orders.idle();
    this.#links.close();
  }
}
