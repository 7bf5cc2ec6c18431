// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Duplex } from "node:stream";
import type { ChainExport } from "@space/capability";
import type {
  CheckpointSigner,
  KeyBundleReceiver,
  ReceiverFeed,
  RouteSource,
  SandboxId,
  SandboxService,
  Secret,
  SnapshotService,
  WorkerControl,
  WorkerHandle,
  WorkerId,
  WorkerPresence,
} from "@space/model";
import { AccessTokens } from "./access-tokens.ts";
import { Administration } from "./api-keys.ts";
import { auditedSandboxes } from "./audited-sandboxes.ts";
import { ConnectedReceivers } from "./bundle-receivers.ts";
import { ConnectedWorkers } from "./connected-workers.ts";
import { exportChain } from "./export-chain.ts";
import { KeyAdministration } from "./key-administration.ts";
import { KeyRotation } from "./key-rotation.ts";
import { Leases } from "./leases.ts";
import { type ControlLimits, defaultControlLimits } from "./limits.ts";
import type { ControlParts, ControlPlanePorts } from "./parts.ts";
import { Placements } from "./placements.ts";
import { ReceiverFeeds } from "./receiver-feeds.ts";
import { recoverAll } from "./recovery.ts";
import { RouteResolver } from "./route-resolver.ts";
import { SandboxOperations } from "./sandbox-operations.ts";
import { type ShutDownReport, shutDownSandboxes } from "./shut-down.ts";
import { Signer } from "./signer.ts";
import { SigningKeys } from "./signing-keys.ts";
import { Transitions } from "./transitions.ts";
import { Upkeep } from "./upkeep.ts";
import { AcceptedWorker, WorkerLinks } from "./worker-links.ts";

export interface ControlPlaneOptions {
  /** Names the installation in what it signs. */
  readonly issuer: string;
  /** From which each sandbox's access token is derived. */
  readonly tokenSecret: Secret<Uint8Array>;
  readonly limits?: Partial<ControlLimits>;
  /** where several replicas have one store, the name of this one, the same after each restart; default one for all. */
  readonly replica?: string;
  /** Whether the worker that a sandbox moves to asks the one that it leaves for its chunks first; default: they come from the store. */
  readonly directMoves?: boolean;
}

/** A worker in this very process, or in a test: the same as behind a link. */
export interface AttachedWorker {
  readonly presence: WorkerPresence;
  detach(): void;
}

export interface ControlPlane {
  readonly service: SandboxService & SnapshotService;
  /** `asked` counts look-ups since the start. */
  readonly routes: RouteSource & { readonly asked: number };
  readonly administration: Administration;
  /** like `administration`, not reachable from outside. */
  readonly keys: KeyAdministration;
  /** the sandbox's identity chain with all that verifies it; undefined when there is none. Throws `store/failed`. */
  chain(sandboxId: SandboxId): Promise<ChainExport | undefined>;
  /**
   * a gateway of this process, which holds the newest bundle when this resolves and gets each newer one. The
   * returned function takes it out again. Throws what it throws.
   */
  attachGateway(gateway: KeyBundleReceiver): Promise<() => void>;
  /** Serves a worker's link until it ends. `workerId` is the one that the peer's TLS certificate names. */
  accept(socket: Duplex, workerId: WorkerId): void;
  /** As {@link accept}, without a socket. */
  attach(workerId: WorkerId, commands: WorkerControl & ReceiverFeed): AttachedWorker;
  /** Signs checkpoints of this process's audit log with the key that signs now. */
  readonly auditCheckpoint: CheckpointSigner;
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
  const replica = options.replica ?? "control-plane";
  const { clock, random, receiverStore: receivers, audit } = ports;
  const sandboxes = auditedSandboxes(ports.sandboxes, audit);
  const { rootKey: root, privateKeys: vault, signingKeys: store } = ports;
  const keys = await SigningKeys.open({ root, vault, store, clock, audit });
  const signer = new Signer({ issuer: options.issuer, keys, clock, random, audit });
  const workers = new ConnectedWorkers(clock);
  const feeds = await ReceiverFeeds.open({ sandboxes, receivers, signer, clock, audit, limits });
  const leases = await Leases.open({ receivers, sandboxes, feeds, signer, clock, audit, limits });
  const bundles = new ConnectedReceivers({ workers, leases, feeds, clock, limits });
  const rotation = new KeyRotation({ keys, receivers: bundles, clock, audit, limits });
  return {
    ...ports,
    sandboxes,
    owner: `${replica}/${Buffer.from(random.bytes(12)).toString("hex")}`,
    replica,
    directMoves: options.directMoves ?? false,
    limits,
    keys,
    signer,
    receivers: bundles,
    rotation,
    tokens: new AccessTokens(options.tokenSecret),
    workers,
    placements: new Placements(workers, sandboxes),
    transitions: new Transitions(),
    feeds,
    leases,
  };
}

class OpenControlPlane implements ControlPlane {
  readonly service: SandboxOperations;
  readonly routes: RouteResolver;
  readonly administration: Administration;
  readonly keys: KeyAdministration;
  readonly auditCheckpoint: CheckpointSigner;
  readonly #parts: ControlParts;
  readonly #upkeep: Upkeep;
  readonly #links: WorkerLinks;

  constructor(parts: ControlParts) {
    this.#parts = parts;
    this.auditCheckpoint = parts.signer.auditCheckpoint;
    this.service = new SandboxOperations(parts);
    this.routes = new RouteResolver(parts);
    this.administration = new Administration(parts);
    this.keys = new KeyAdministration(parts);
    this.#upkeep = new Upkeep(parts);
    this.#links = new WorkerLinks(parts);
  }

  begin(): void {
    this.#upkeep.start();
  }

  chain(sandboxId: SandboxId): Promise<ChainExport | undefined> {
    return exportChain(this.#parts, sandboxId);
  }

  async attachGateway(gateway: KeyBundleReceiver): Promise<() => void> {
    const { receivers, keys } = this.#parts;
    return receivers.addGateway(gateway, () => keys.bundle);
  }

  accept(socket: Duplex, workerId: WorkerId): void {
    this.#links.accept(socket, workerId);
  }

  attach(workerId: WorkerId, commands: WorkerControl & ReceiverFeed): AttachedWorker {
    const presence = new AcceptedWorker(this.#parts, workerId, () => presence.gone());
    const feed: ReceiverFeed = { tell: (item) => commands.tell(item) }; // one of its own, as each link has
    presence.begin({ control: commands, feed }, async () => undefined);
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
    await this.#parts.feeds.idle();
    await this.#parts.rotation.idle();
    this.#links.close();
  }
}
