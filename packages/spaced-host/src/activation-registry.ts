// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type AdoptRequest,
  type BridgeReport,
  type CarriedPiece,
  carriedPieceBytes,
  type HostControl,
  type RekeyRequest,
  type SeenReport,
  SpaceError,
} from "@space/model";
import type { BridgeEvents } from "./bridge-events.ts";
import { decodeCarried } from "./carried-codec.ts";
import { CarriedParcels } from "./carried-parcels.ts";
import { type EndpointPorts, GuestEndpoint } from "./guest-endpoint.ts";
import {
  type ActivationPorts,
  HostedActivation,
  type SandboxFacts,
  withinLimit,
} from "./hosted-activation.ts";
import type { LeaseGate } from "./lease-gate.ts";

/** Longest wait for the guest's files to be flushed. */
const syncLimitMs = 45_000;

export interface RegistryOptions {
  /** Who acts where the caller names nobody. */
  readonly defaultUser: string;
  /** Where commands run, and what an empty path means. */
  readonly workdir: string;
}

type RegistryPorts = EndpointPorts &
  ActivationPorts & { readonly gate: LeaseGate; readonly audit: BridgeEvents };

/** The activations that this process serves, and the worker's commands on them. */
export class ActivationRegistry implements HostControl {
  readonly #options: RegistryOptions;
  readonly #ports: RegistryPorts;
  readonly #activations = new Map<ActivationId, HostedActivation>();
  readonly #adopting = new Map<ActivationId, Promise<void>>();
  readonly #carrying = new CarriedParcels();

  constructor(options: RegistryOptions, ports: RegistryPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  find(activationId: ActivationId): HostedActivation | undefined {
    return this.#activations.get(activationId);
  }

  async adopt(request: AdoptRequest): Promise<void> {
    const { activationId } = request;
    await this.#adopting.get(activationId)?.catch(() => undefined); // its own caller is told
    const adopting = this.#adopt(request);
    this.#adopting.set(activationId, adopting);
    try {
      await adopting;
    } finally {
      if (this.#adopting.get(activationId) === adopting) this.#adopting.delete(activationId);
    }
  }

  async rekey({ from, to, activationSecret }: RekeyRequest): Promise<void> {
    const activation = this.#activations.get(from);
    if (activation === undefined) {
      await this.#require(to).verify(); // repeated after it was done
      return;
    }
    this.#activations.delete(from);
    try {
      await activation.rekey(to, activationSecret);
    } catch (error) {
      this.#activations.set(from, activation);
      throw error;
    }
    this.#activations.set(to, activation);
    this.#ports.audit.record("bridge/rekeyed", { from, to });
  }

  async quiesce(activationId: ActivationId, limitMs: number, letGo: boolean): Promise<boolean> {
    const activation = this.#require(activationId);
    if (activation.hasLetGo) return true; // repeated after it was done
    const settled = await activation.settle(limitMs);
    await this.#sync(activation);
    if (letGo) await activation.letGo();
    activation.standStill();
    return settled;
  }

  async carried(activationId: ActivationId, offset: number): Promise<CarriedPiece> {
    const bytes = this.#require(activationId).carried();
    return { offset, totalBytes: bytes.length, bytes: bytes.subarray(offset, offset + carriedPieceBytes) };
  }

  async carry(activationId: ActivationId, piece: CarriedPiece): Promise<void> {
    this.#carrying.add(activationId, piece);
  }

  async release(activationId: ActivationId): Promise<void> {
    await this.#adopting.get(activationId)?.catch(() => undefined); // its own caller is told
    this.#carrying.drop(activationId);
    const activation = this.#activations.get(activationId);
    if (activation === undefined) return;
    this.#activations.delete(activationId);
    activation.close();
    this.#ports.audit.record("bridge/released", { activationId });
  }

  holdUntil(deadlineBootMs: number): Promise<void> {
    this.#ports.gate.holdUntil(deadlineBootMs);
    return Promise.resolve();
  }

  takeReport(seen: SeenReport | null): Promise<BridgeReport> {
    return this.#ports.audit.take(seen);
  }

  list(): Promise<readonly ActivationId[]> {
    // What a guest was let go of for has to be adopted anew before it is served.
    return Promise.resolve([...this.#activations].flatMap(([id, { hasLetGo }]) => (hasLetGo ? [] : [id])));
  }

  /** Ends every activation. */
  close(): void {
    for (const activation of this.#activations.values()) activation.close();
    this.#activations.clear();
  }

  async #adopt(request: AdoptRequest): Promise<void> {
    const { activationId, sandboxId } = request;
    const known = this.#activations.get(activationId);
    if (known !== undefined) {
      if (!sameEndpoint(known, request))
        throw new SpaceError("endpoint/mismatch", { problem: "adopted otherwise" });
      await known.verify();
      known.facts = this.#facts(request);
      return;
    }
    const { socketPath, guest, activationSecret: secret } = request;
    const endpoint = new GuestEndpoint({ activationId, secret, socketPath, guest }, this.#ports);
    const activation = this.#begin(request, endpoint);
    try {
      await activation.verify();
    } catch (error) {
      activation.close();
      throw error;
    }
    this.#activations.set(activationId, activation);
    this.#ports.audit.record("bridge/adopted", { activationId, sandboxId });
  }

  #begin(request: AdoptRequest, endpoint: GuestEndpoint): HostedActivation {
    const bytes = this.#carrying.take(request.activationId);
    const carried = bytes && decodeCarried(bytes);
    try {
      return new HostedActivation({ facts: this.#facts(request), endpoint, carried }, this.#ports);
    } catch (cause) {
      throw new SpaceError("snapshot/refused", { problem: "its processes cannot be taken up" }, { cause });
    }
  }

  async #sync({ pool }: HostedActivation): Promise<void> {
    const sync = pool.use((guest) => guest.sync());
    const synced = await withinLimit(this.#ports.clock, syncLimitMs, sync).catch(guestGone);
    if (!synced) throw new SpaceError("deadline/passed", { what: "sync", limitMs: syncLimitMs });
  }

  /** What E2B's variables say is fact: they win over what the sandbox was created with. */
  #facts({ sandboxId, template, variables, isFirst }: AdoptRequest): SandboxFacts {
    const own = { E2B_SANDBOX: "true", E2B_SANDBOX_ID: sandboxId, E2B_TEMPLATE_ID: template };
    return { sandboxId, template, isFirst, variables: { ...variables, ...own }, ...this.#options };
  }

  #require(activationId: ActivationId): HostedActivation {
    const activation = this.#activations.get(activationId);
    if (activation === undefined) throw new SpaceError("endpoint/unverifiable", { problem: "not adopted" });
    return activation;
  }
}

function guestGone(cause: unknown): never {
  if (cause instanceof SpaceError) throw cause;
  throw new SpaceError("endpoint/unverifiable", { problem: "the guest did not flush" }, { cause });
}

function sameEndpoint({ endpoint }: HostedActivation, request: AdoptRequest): boolean {
  const { socketPath, guest, secret } = endpoint.identity;
  return (
    socketPath === request.socketPath &&
    guest.pid === request.guest.pid &&
    guest.startTime === request.guest.startTime &&
    Buffer.from(secret.reveal()).equals(request.activationSecret.reveal())
  );
}
