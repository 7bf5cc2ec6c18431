// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ActivationId,
  type AdoptRequest,
  type HostControl,
  type RekeyRequest,
  SpaceError,
} from "@space/model";
import {
  decodeJson,
  FrameLink,
  type HostOperationHead,
  headerValue,
  hostControlHandlers,
  type LinkStream,
  parseHostOperationHead,
  rpcMethod,
  type StreamHandlers,
  serveRpc,
} from "@space/wire";
import type { EventLoop, Incarnation } from "./event-loop.ts";
import type { SimMachine, SimProcess } from "./sim-machine.ts";
import type { SimRandom } from "./sim-random.ts";
import type { SimSocket } from "./sim-socket.ts";

/** Told what operations really do in guests. */
export interface GuestWatcher {
  /** An operation has its effect, or reads, in this process now. */
  acted(operation: number, process: SimProcess, head: HostOperationHead): void;
  /** A stream's bytes leave the guest. */
  streamed(operation: number, process: SimProcess): void;
}

export interface BridgePorts {
  readonly machine: SimMachine;
  readonly loop: EventLoop;
  readonly owner: Incarnation;
  readonly random: SimRandom;
  readonly watcher: GuestWatcher;
}

/** The word in the headers of a simulated caller's request that names the operation. */
export const operationHeader = "x-operation";

/**
 * A host's bridge with the guests behind it. It verifies an endpoint as the real one does: the process exists, runs, and
 * knows the activation's secret. Guests keep the numbers of the writes that reached them, in order.
 */
export class SimBridge implements HostControl {
  readonly #ports: BridgePorts;
  readonly #served = new Map<ActivationId, SimProcess>();
  readonly #handlers = hostControlHandlers(this);

  constructor(ports: BridgePorts) {
    this.#ports = ports;
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

  async release(activationId: ActivationId): Promise<void> {
    this.#served.delete(activationId);
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
    return new GuestOperation(this.#ports, stream, process, head);
  }
}

const ignoring: StreamHandlers = {
  onData: () => undefined,
  onEnd: () => undefined,
  onReset: () => undefined,
};

/** Most pieces that a simulated process prints. */
const mostPieces = 12;

/** One operation in a guest. */
class GuestOperation implements StreamHandlers {
  readonly #ports: BridgePorts;
  readonly #stream: LinkStream;
  readonly #process: SimProcess;
  readonly #head: HostOperationHead;
  readonly #number: number;
  #over = false;

  constructor(ports: BridgePorts, stream: LinkStream, process: SimProcess, head: HostOperationHead) {
    this.#ports = ports;
    this.#stream = stream;
    this.#process = process;
    this.#head = head;
    this.#number = Number(headerValue(head.headers, operationHeader));
  }

  onData(chunk: Buffer): void {
    this.#stream.consumed(chunk.length);
  }

  /** The whole request has come. What a frozen guest was sent waits for it. */
  onEnd(): void {
    const { loop, owner, random } = this.#ports;
    if (random.chance(0.2)) loop.after(random.between(0, 40), owner, () => this.#act());
    else this.#act();
  }

  onReset(): void {
    this.#over = true;
  }

  #act(): void {
    const { loop, owner, watcher } = this.#ports;
    if (this.#over || this.#process.state === "gone") return this.#gone();
    if (this.#process.state === "frozen") {
      loop.after(100, owner, () => this.#act());
      return;
    }
    if (this.#head.method === "POST") this.#process.files += ` ${this.#number}`;
    watcher.acted(this.#number, this.#process, this.#head);
    this.#stream.sendHead(JSON.stringify({ status: 200, headers: ["content-type", "text/plain"] }), false);
    this.#stream.send(Buffer.from(`${this.#process.uid}|${this.#process.files}`));
    if (this.#head.path === "/process.Process/Start") this.#print(this.#ports.random.below(mostPieces));
    else this.#stream.end();
  }

  #print(left: number): void {
    const { loop, owner, random, watcher } = this.#ports;
    if (left === 0) {
      this.#stream.end();
      return;
    }
    loop.after(random.between(200, 6000), owner, () => {
      if (this.#over || this.#process.state === "gone") return this.#gone();
      if (this.#process.state === "frozen") return this.#print(left);
      watcher.streamed(this.#number, this.#process);
      this.#stream.send(Buffer.from(`|${this.#process.uid}`));
      this.#print(left - 1);
    });
  }

  #gone(): void {
    if (!this.#over) this.#stream.reset("execution-gone");
    this.#over = true;
  }
}
