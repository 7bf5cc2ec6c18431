// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { TrustedKeys } from "@space/capability";
import type { ControlPlane } from "@space/control-plane";
import {
  createGateway,
  createWorkerLinks,
  defaultWorkerLinkLimits,
  type Gateway,
  type GatewayCounts,
} from "@space/gateway";
import {
  type CallerCredential,
  type KeyBundleReceiver,
  type ResolveRequest,
  SpaceError,
  type WantedAccess,
  type WorkerEndpoint,
} from "@space/model";
import { MemoryBundleStore } from "../src/memory-keys.ts";
import { askReplicas, type ChooseReplica } from "./ask-replicas.ts";
import type { ControlNode } from "./control-node.ts";
import type { EventLoop } from "./event-loop.ts";
import { Incarnation } from "./event-loop.ts";
import type { LinkEnd, Network } from "./network.ts";
import type { Rates } from "./rates.ts";
import { SimClock } from "./sim-clock.ts";
import type { SimDisk } from "./sim-disk.ts";
import { type HttpOutcome, SimRequest, type SimRequestParts, SimResponse, SimServer } from "./sim-http.ts";
import type { SimSocket } from "./sim-socket.ts";
import { gatewayTaps } from "./taps.ts";
import { type Addresses, silentAudit, type WorldPorts } from "./world-ports.ts";

export interface GatewayNodeOptions {
  readonly host: string;
  /** stands for the thumbprint of its certificate. */
  readonly presenter: string;
  readonly chooseReplica: ChooseReplica;
  readonly controls: readonly ControlNode[];
  /** the pinned root. */
  readonly root: KeyObject;
  readonly addresses: Addresses;
  readonly diskOf: (host: string) => SimDisk;
}

/** How often it looks whether a replica of the control plane knows it. */
const attachEveryMs = 4000;
const resolveLimitMs = 20_000;
/** Bodies above this take the way of long ones. */
const bufferedBodyBytes = 128;

/** One gateway on its host. */
export class GatewayNode {
  readonly host: string;
  readonly #options: GatewayNodeOptions;
  readonly #ports: WorldPorts;
  #run: { readonly owner: Incarnation; readonly server: SimServer; readonly gateway: Gateway } | undefined;
  readonly #open = new Set<SimResponse>();
  readonly #earlier: GatewayCounts[] = [];
  readonly #keyStore = new MemoryBundleStore();
  readonly #attached = new Map<
    ControlNode,
    { readonly control: ControlPlane; readonly detach: () => void }
  >();

  constructor(options: GatewayNodeOptions, ports: WorldPorts) {
    this.host = options.host;
    this.#options = options;
    this.#ports = ports;
  }

  get presenter(): string {
    return this.#options.presenter;
  }

  get gateway(): Gateway | undefined {
    return this.#run?.gateway;
  }

  get owner(): Incarnation | undefined {
    return this.#run?.owner;
  }

  start(): void {
    if (this.#run !== undefined) return;
    const { loop, random, clockErrors } = this.#ports;
    const owner = new Incarnation(this.host);
    const clock = new SimClock(loop, owner, clockErrors(this.host));
    const server = new SimServer();
    const links = createWorkerLinks(defaultWorkerLinkLimits, {
      clock,
      dial: (endpoint, signal) => this.#dial(owner, endpoint, signal).then((socket) => socket.asDuplex()),
    });
    const gateway = createGateway(
      { presenter: this.#options.presenter, limits: { bufferedBodyBytes } },
      {
        routes: { resolve: (request) => this.#resolve(owner, request) },
        links,
        api: (_request, response) => void response.end(),
        clock,
        random: random.child(this.host),
        audit: silentAudit,
        keys: new TrustedKeys({ root: this.#options.root, store: this.#keyStore }),
      },
    );
    gateway.attach(server as never); // cast: the events that it listens to
    this.#run = { owner, server, gateway };
    for (const control of this.#options.controls) void this.#attach(owner, gateway, control);
  }

  /** has a replica bring its bundles here, for as long as both live. */
  async #attach(owner: Incarnation, gateway: Gateway, node: ControlNode): Promise<void> {
    const { loop, network } = this.#ports;
    const from = { host: this.host, owner };
    for (;;) {
      const { control } = node;
      if (control !== undefined && this.#attached.get(node)?.control !== control) {
        const receiver: KeyBundleReceiver = {
          replaceKeys: (bundle) =>
            callOver(network, loop, { from: node.end(), to: from }, () => gateway.replaceKeys(bundle)),
        };
        node.inside((open) => {
          open.attachGateway(receiver).then(
            (detach) => {
              if (owner.alive) this.#attached.set(node, { control, detach });
              else detach();
            },
            () => undefined, // tried again soon
          );
        });
      }
      await loop.sleep(attachEveryMs, owner);
    }
  }

  crash(): void {
    const run = this.#run;
    if (run === undefined) return;
    run.owner.alive = false;
    this.#earlier.push(run.gateway.counts);
    this.#run = undefined;
    this.#ports.network.drop(run.owner, "process");
    for (const { detach } of this.#attached.values()) detach();
    this.#attached.clear();
    for (const response of [...this.#open]) response.socket.destroy();
    this.#open.clear();
  }

  /** Adds what this gateway has counted, in all its runs. */
  count(rates: Rates): void {
    const now = this.#run?.gateway.counts;
    for (const { repairs, refreshes, continued } of now === undefined
      ? this.#earlier
      : [...this.#earlier, now]) {
      rates.repairs += repairs;
      rates.refreshes += refreshes;
      rates.continued += continued;
    }
  }

  /** Sends a request over a connection of a caller. Returns what gives it up. */
  request(
    parts: SimRequestParts,
    caller: {
      readonly owner: Incarnation;
      readonly onPiece: (text: string) => void;
      readonly onOutcome: (outcome: HttpOutcome) => void;
    },
  ): () => void {
    const { loop, network } = this.#ports;
    const response: SimResponse = new SimResponse({
      onPiece: caller.onPiece,
      onOutcome: (outcome) => {
        this.#open.delete(response);
        loop.after(network.delayMs(), caller.owner, () => caller.onOutcome(outcome));
      },
    });
    const run = this.#run;
    if (run === undefined) {
      response.socket.destroy();
      return () => undefined;
    }
    this.#open.add(response);
    loop.after(network.delayMs(), run.owner, () =>
      run.server.emit("request", new SimRequest(parts), response),
    );
    return () => loop.soon(run.owner, () => response.abandon());
  }

  async #resolve(owner: Incarnation, request: ResolveRequest) {
    const { oracle } = this.#ports;
    const granted = oracle.gateways.asked(this.#options.presenter, authorityOf(request));
    const { chooseReplica } = this.#options;
    const call = { from: { host: this.host, owner }, limitMs: resolveLimitMs };
    const answer = await askReplicas(chooseReplica, call, (control) => control.routes.resolve(request));
    if (answer.kind === "entry") granted(answer.entry.capability);
    return answer;
  }

  /** As TLS does: resolves only with the worker that was asked for, whoever has its address now. */
  #dial(owner: Incarnation, endpoint: WorkerEndpoint, signal: AbortSignal): Promise<SimSocket> {
    const { loop, network, faults, oracle } = this.#ports;
    const { addresses, presenter, diskOf } = this.#options;
    return new Promise((resolve, reject) => {
      const closed = (): void => reject(new SpaceError("link/closed", {}));
      signal.addEventListener("abort", closed, { once: true });
      loop.after(2 * network.delayMs(), owner, () => {
        const listener = addresses.get(`${endpoint.host}:${endpoint.port}`);
        if (listener === undefined) return closed();
        if (network.areApart(this.host, listener.host)) return; // no answer comes
        if (listener.workerId !== endpoint.workerId) {
          faults.landed("address-reuse");
          return reject(new SpaceError("endpoint/mismatch", { problem: "another component" }));
        }
        const taps = gatewayTaps(oracle, {
          gateway: presenter,
          host: listener.host,
          disk: diskOf(listener.host),
        });
        const [near, far] = network.connect(
          { host: this.host, owner, tap: taps.gatewayEnd },
          { host: listener.host, owner: listener.owner, tap: taps.workerEnd },
        );
        loop.soon(listener.owner, () => listener.accept(far, presenter));
        resolve(near);
      });
    });
  }
}

/** Names caller, sandbox and access, in the oracle's own words. */
export function authorityOf(request: Pick<ResolveRequest, "sandboxId" | "credential" | "wanted">): string {
  return `${request.sandboxId} ${credentialText(request.credential)} ${wantedText(request.wanted)}`;
}

function credentialText(credential: CallerCredential): string {
  switch (credential.kind) {
    case "none":
      return "none";
    case "access-token":
      return `token ${credential.token.reveal()}`;
    case "file-signature":
      return `signature ${credential.signature.reveal()}`;
  }
}

function wantedText(wanted: WantedAccess): string {
  return wanted.purpose === "control" ? wanted.scope : `${wanted.port} ${wanted.protocol}`;
}

/** A call over the network whose answer may not come: then it is never settled, as of a peer that is silent. */
function callOver(
  network: Network,
  loop: EventLoop,
  { from, to }: { readonly from: LinkEnd; readonly to: LinkEnd },
  ask: () => Promise<void>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    network.call({ from, to }, () => {
      const answer = (settle: () => void): void =>
        network.call({ from: to, to: from }, () => loop.soon(from.owner, settle));
      ask().then(
        () => answer(resolve),
        (error: unknown) => answer(() => reject(error)),
      );
    });
  });
}
