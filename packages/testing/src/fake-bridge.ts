// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Duplex, duplexPair } from "node:stream";
import {
  type ActivationId,
  type AdoptRequest,
  type BridgeReport,
  type CarriedPiece,
  type HostControl,
  type RekeyRequest,
  type SeenReport,
  SpaceError,
} from "@space/model";
import {
  decodeJson,
  FrameLink,
  type HostOperationHead,
  hostControlHandlers,
  type LinkStream,
  parseHostOperationHead,
  rpcMethod,
  type StreamHandlers,
  serveRpc,
} from "@space/wire";
import type { FakeMachine, FakeProcess } from "./fake-machine.ts";

/** An operation that reached the bridge. */
export interface ForwardedToBridge {
  readonly head: HostOperationHead;
  readonly rawHead: string;
  readonly stream: LinkStream;
  body: string;
  ended: boolean;
  reset: string | undefined;
}

/**
 * A bridge in memory. It verifies that the process which it is told of exists, runs and knows the secret. What it does
 * with an operation is the test's: by default it answers 200 with the activation's memory when the request has ended.
 */
export class FakeBridge implements HostControl {
  readonly #machine: FakeMachine;
  readonly served = new Map<ActivationId, FakeProcess>();
  readonly operations: ForwardedToBridge[] = [];
  readonly calls: string[] = [];
  readonly #links: FrameLink[] = [];
  /** Called at each command; what it throws is the bridge's failure. */
  beforeCommand: (command: string) => void | Promise<void> = () => undefined;
  onOperation: (operation: ForwardedToBridge) => void = () => undefined;
  /** The worker reset it. */
  onReset: (operation: ForwardedToBridge) => void = () => undefined;
  onRequestEnd: (operation: ForwardedToBridge) => void = (operation) => this.answer(operation);

  constructor(machine: FakeMachine) {
    this.#machine = machine;
  }

  /** A new connection's worker end. */
  accept(): Duplex {
    const [near, far] = duplexPair();
    const handlers = hostControlHandlers(this);
    const link = new FrameLink(far, {
      dialled: false,
      onOpen: (stream, head) => {
        const text = head.toString();
        const value = decodeJson(text);
        const rpc = rpcMethod(value);
        if (rpc !== undefined)
          return serveRpc(stream, { rpc, params: (value as { params?: unknown }).params }, handlers);
        return this.#operation(stream, text);
      },
    });
    this.#links.push(link);
    return near;
  }

  /** Every connection breaks. */
  dropLinks(): void {
    for (const link of this.#links.splice(0)) link.destroy(undefined);
  }

  /** The bridge process is another one: it knows nothing. */
  restart(): void {
    this.dropLinks();
    this.served.clear();
  }

  answer(operation: ForwardedToBridge, status = 200, headers: readonly string[] = []): void {
    const process = this.served.get(operation.head.activation);
    if (process === undefined) {
      operation.stream.reset("execution-gone");
      return;
    }
    operation.stream.sendHead(
      JSON.stringify({ status, headers: ["served-by", operation.head.activation, ...headers] }),
      false,
    );
    operation.stream.send(Buffer.from(`memory=${process.memory} files=${process.files}`));
    operation.stream.end();
  }

  /** what it was told last. */
  deadlineBootMs = 0;

  async holdUntil(deadlineBootMs: number): Promise<void> {
    this.deadlineBootMs = deadlineBootMs;
  }

  async adopt(request: AdoptRequest): Promise<void> {
    await this.#command("adopt");
    const { activationId, activationSecret, guest, socketPath } = request;
    const process = this.#find(socketPath);
    const isRecorded =
      process?.evidence.guest.pid === guest.pid && process.evidence.guest.startTime === guest.startTime;
    if (process === undefined || !isRecorded)
      throw new SpaceError("endpoint/mismatch", { problem: "process" });
    if (process.state !== "running") throw new SpaceError("endpoint/unverifiable", { problem: "frozen" });
    const knows = Buffer.from(process.secret).equals(activationSecret.reveal());
    if (!knows || process.activationId !== activationId)
      throw new SpaceError("endpoint/mismatch", { problem: "secret" });
    this.served.set(activationId, process);
  }

  async rekey({ from, to, activationSecret }: RekeyRequest): Promise<void> {
    await this.#command("rekey");
    const process = this.served.get(from);
    if (process?.state !== "running") throw new SpaceError("endpoint/mismatch", { problem: "rekey" });
    process.activationId = to;
    process.secret = activationSecret.reveal();
    this.served.delete(from);
    this.served.set(to, process);
  }

  /** It knows of no streams. */
  async carried(_activationId: ActivationId, offset: number): Promise<CarriedPiece> {
    return { offset, totalBytes: 0, bytes: Buffer.alloc(0) };
  }

  async carry(): Promise<void> {}

  async quiesce(activationId: ActivationId): Promise<boolean> {
    await this.#command("quiesce");
    if (this.served.get(activationId)?.state !== "running")
      throw new SpaceError("endpoint/unverifiable", { problem: "frozen" });
    return true;
  }

  async release(activationId: ActivationId): Promise<void> {
    await this.#command("release");
    this.served.delete(activationId);
  }

  /** Told to whoever asks, as the real one does: again, until it is acknowledged. */
  readonly reports: BridgeReport[] = [];
  #tell: (() => void) | undefined;

  report(...events: BridgeReport["events"]): void {
    this.reports.push({ source: "0".repeat(16), number: this.reports.length + 1, events });
    this.#tell?.();
  }

  async takeReport(seen: SeenReport | null): Promise<BridgeReport> {
    const at = seen?.number ?? 0;
    while (this.reports[at] === undefined)
      await new Promise<void>((resolve) => {
        this.#tell = resolve;
      });
    return this.reports[at];
  }

  async list(): Promise<readonly ActivationId[]> {
    await this.#command("list");
    return [...this.served.keys()];
  }

  async #command(command: string): Promise<void> {
    this.calls.push(command);
    await this.beforeCommand(command);
  }

  #find(socketPath: string): FakeProcess | undefined {
    return [...this.#machine.processes.values()].find(({ evidence }) => evidence.socketPath === socketPath);
  }

  #operation(stream: LinkStream, text: string): StreamHandlers {
    const head = parseHostOperationHead(JSON.parse(text));
    const operation: ForwardedToBridge = {
      head,
      rawHead: text,
      stream,
      body: "",
      ended: false,
      reset: undefined,
    };
    this.operations.push(operation);
    this.onOperation(operation);
    return {
      onData: (chunk) => {
        operation.body += chunk.toString("latin1");
        stream.consumed(chunk.length);
      },
      onEnd: () => {
        operation.ended = true;
        this.onRequestEnd(operation);
      },
      onReset: (reason) => {
        operation.reset = reason;
        this.onReset(operation);
      },
    };
  }
}
