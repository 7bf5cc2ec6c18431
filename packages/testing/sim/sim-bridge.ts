// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type AdoptRequest,
  type BridgeReport,
  type CarriedPiece,
  type HostControl,
  type RekeyRequest,
  SpaceError,
} from "@space/model";
import {
  decodeJson,
  FrameLink,
  hostControlHandlers,
  type LinkStream,
  parseHostOperationHead,
  rpcMethod,
  type StreamHandlers,
  serveRpc,
} from "@space/wire";
import { GuestOperation, type GuestPorts, ignoring } from "./sim-guest.ts";
import { GuestStreams } from "./sim-guest-streams.ts";
import type { SimMachine, SimProcess } from "./sim-machine.ts";
import type { SimSocket } from "./sim-socket.ts";

export interface BridgePorts extends GuestPorts {
  readonly machine: SimMachine;
}

/**
 * A host's bridge with the guests behind it. It verifies an endpoint as the real one does: the process exists, runs, and
 * knows the activation's secret. Guests keep the numbers of the writes that reached them, in order.
 */
export class SimBridge implements HostControl {
  readonly #ports: BridgePorts;
  readonly #served = new Map<ActivationId, SimProcess>();
  readonly #handlers = hostControlHandlers(this);
  readonly #streams: GuestStreams;

  constructor(ports: BridgePorts) {
    this.#ports = ports;
    this.#streams = new GuestStreams(ports);
  }

  accept(socket: SimSocket): void {
    const link: FrameLink = new FrameLink(socket.asDuplex(), {
      dialled: false,
      onOpen: (stream, head) => this.#open(stream, head.toString()),
      onBug: (error) => link.destroy(error),
    });
  }

  async adopt({ activationId, activationSecret, guest, socketPath }: AdoptRequest): Promise<void> {
    const process = this.#ports.machine.bySocket.get(socketPath);
    const { pid, startTime } = process?.evidence.guest ?? {};
    if (process === undefined || pid !== guest.pid || startTime !== guest.startTime)
      throw new SpaceError("endpoint/mismatch", { problem: "process" });
    if (process.state !== "running") throw new SpaceError("endpoint/unverifiable", { problem: "frozen" });
    const knows = Buffer.from(process.secret).equals(activationSecret.reveal());
    if (!knows || process.activation !== activationId)
      throw new SpaceError("endpoint/mismatch", { problem: "secret" });
    this.#served.set(activationId, process);
  }

  async rekey({ from, to, activationSecret }: RekeyRequest): Promise<void> {
    const process = this.#served.get(from);
    if (process?.state !== "running") throw new SpaceError("endpoint/mismatch", { problem: "rekey" });
    process.activation = to;
    process.secret = activationSecret.reveal();
    this.#served.delete(from);
    this.#served.set(to, process);
  }

  async quiesce(activationId: ActivationId): Promise<boolean> {
    if (this.#served.get(activationId)?.state !== "running")
      throw new SpaceError("endpoint/unverifiable", { problem: "frozen" });
    return true;
  }

  /** Its guests keep their memory on their own machine alone. */
  async carried(_activationId: ActivationId, offset: number): Promise<CarriedPiece> {
    return { offset, totalBytes: 0, bytes: Buffer.alloc(0) };
  }

  async carry(): Promise<void> {}

  async release(activationId: ActivationId): Promise<void> {
    this.#served.delete(activationId);
  }

  /** The machine's own fence holds the guests; what waits for them waits here. */
  async holdUntil(deadlineBootMs: number): Promise<void> {
    this.#ports.machine.holdUntil(deadlineBootMs);
  }

  /** Nothing to tell: the simulation keeps no audit log. */
  takeReport(): Promise<BridgeReport> {
    return new Promise(() => undefined);
  }

  async list(): Promise<readonly ActivationId[]> {
    return [...this.#served.keys()];
  }

  #open(stream: LinkStream, text: string): StreamHandlers {
    const value = decodeJson(text);
    const rpc = rpcMethod(value);
    if (rpc !== undefined) {
      const params = typeof value === "object" && value !== null && "params" in value ? value.params : null;
      return serveRpc(stream, { rpc, params }, this.#handlers);
    }
    const head = parseHostOperationHead(value);
    const process = this.#served.get(head.activation);
    if (process === undefined) {
      stream.reset("execution-gone");
      return ignoring;
    }
    return this.#streams.isStream(head)
      ? this.#streams.open(stream, process, head)
      : new GuestOperation(this.#ports, stream, process, head);
  }
}
