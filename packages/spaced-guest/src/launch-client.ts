// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { connect as connectSocket, type Socket } from "node:net";
import { FrameParser, PayloadReader, ProtocolError } from "./frames.ts";
import { GuestConnectionError, GuestError } from "./guest-error.ts";
import * as wire from "./launch-protocol.ts";

const { LaunchFrame } = wire;

interface Pending {
  readonly answer: number;
  readonly resolve: (reader: PayloadReader) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The worker's end of the launch protocol. Requests may run concurrently; each settles by its id. A request rejects with
 * `GuestError` (the launcher's errno and step) or `GuestConnectionError` (the launcher or the socket is gone).
 */
export class LaunchClient {
  /** The underlying socket, for peer credentials. */
  readonly socket: Socket;
  readonly #pending = new Map<number, Pending>();
  readonly #exitListeners = new Set<(exit: wire.LaunchExit) => void>();
  readonly #closeListeners = new Set<(error: GuestConnectionError) => void>();
  #nextId = 1;
  #fault: GuestConnectionError | null = null;

  private constructor(socket: Socket) {
    this.socket = socket;
    const parser = new FrameParser((type, payload) => this.#onFrame(type, payload));
    socket.on("data", (chunk: Buffer) => {
      try {
        parser.push(chunk);
      } catch (cause) {
        this.#fail(new GuestConnectionError("protocol", { cause }));
      }
    });
    socket.on("error", (cause) => this.#fail(new GuestConnectionError("closed", { cause })));
    socket.on("close", () => this.#fail(new GuestConnectionError("closed")));
  }

  static connect(socketPath: string): Promise<LaunchClient> {
    return new Promise((resolve, reject) => {
      const socket = connectSocket(socketPath);
      const onError = (cause: Error): void => reject(new GuestConnectionError("closed", { cause }));
      socket.once("error", onError);
      socket.once("connect", () => {
        socket.off("error", onError);
        resolve(new LaunchClient(socket));
      });
    });
  }

  /** Resolves when the guest's pid 1 is listening. */
  async start(record: wire.StartRecord): Promise<wire.StartedProcess> {
    const reader = await this.#request(LaunchFrame.started, (id) => wire.encodeStart(id, record));
    return { hostPid: reader.u32(), startTime: reader.u64() };
  }

  /** Makes a guest that waits to be claimed. Rejects with ENOSYS where the launcher has none. */
  async prepare(record: wire.PrepareRecord): Promise<wire.StartedProcess> {
    const reader = await this.#request(LaunchFrame.started, (id) => wire.encodePrepare(id, record));
    return { hostPid: reader.u32(), startTime: reader.u64() };
  }

  /** Turns a prepared guest into an activation: as `start`, sooner. Rejects with ESRCH when it is not there. */
  async claim(record: wire.ClaimRecord): Promise<wire.StartedProcess> {
    const reader = await this.#request(LaunchFrame.started, (id) => wire.encodeClaim(id, record));
    return { hostPid: reader.u32(), startTime: reader.u64() };
  }

  /** Resolves when the restored guest listens, as who the record says it is. Rejects with ENOSYS where the launcher restores none. */
  async restore(record: wire.RestoreRecord): Promise<wire.StartedProcess> {
    const reader = await this.#request(LaunchFrame.started, (id) => wire.encodeRestore(id, record));
    return { hostPid: reader.u32(), startTime: reader.u64() };
  }

  /** Resolves when a guest that has let go of its socket listens again. It must run. */
  async goOn(activationId: string): Promise<wire.StartedProcess> {
    const reader = await this.#request(LaunchFrame.started, (id) => wire.encodeGoOn(id, activationId));
    return { hostPid: reader.u32(), startTime: reader.u64() };
  }

  /** Starts a `spaced-host`. */
  async host(record: wire.HostRecord): Promise<wire.StartedProcess> {
    const reader = await this.#request(LaunchFrame.started, (id) => wire.encodeHost(id, record));
    return { hostPid: reader.u32(), startTime: reader.u64() };
  }

  /**
   * Starts a sandbox's runtime, under the activation's name; resolves when it is executed. Rejects with ENOSYS where the
   * launcher runs none.
   */
  async run(record: wire.RunRecord): Promise<wire.StartedProcess> {
    const reader = await this.#request(LaunchFrame.started, (id) => wire.encodeRun(id, record));
    return { hostPid: reader.u32(), startTime: reader.u64() };
  }

  /** SIGKILL to an activation's pid 1 or to a `spaced-host`; resolves when it is reaped, at once when it is not there. */
  async kill(name: string): Promise<void> {
    await this.#request(LaunchFrame.done, (id) => wire.encodeKill(id, name));
  }

  async list(): Promise<wire.LaunchListing[]> {
    const reader = await this.#request(LaunchFrame.listing, (id) =>
      wire.encodeLaunchRequest(LaunchFrame.list, id),
    );
    return wire.decodeListing(reader);
  }

  /** every guest is frozen when this moment of CLOCK_BOOTTIME passes, and goes on when a later one is said. */
  async lease(deadlineNs: bigint): Promise<void> {
    await this.#request(LaunchFrame.done, (id) => wire.encodeLease(id, deadlineNs));
  }

  /** Ends the launcher and everything it started. */
  async quit(): Promise<void> {
    await this.#request(LaunchFrame.done, (id) => wire.encodeLaunchRequest(LaunchFrame.quit, id));
  }

  /** Called for everything the launcher reaps, asked for or not. Returns a function that removes the listener. */
  onExit(listener: (exit: wire.LaunchExit) => void): () => void {
    this.#exitListeners.add(listener);
    return () => this.#exitListeners.delete(listener);
  }

  /** Called once when the connection to the launcher ends. */
  onClose(listener: (error: GuestConnectionError) => void): void {
    if (this.#fault !== null) listener(this.#fault);
    else this.#closeListeners.add(listener);
  }

  /** Drops the connection; the launcher and what it started go on. */
  close(): void {
    this.#fail(new GuestConnectionError("closed"));
  }

  #request(answer: number, encode: (id: number) => Buffer): Promise<PayloadReader> {
    return new Promise((resolve, reject) => {
      if (this.#fault !== null) {
        reject(this.#fault);
        return;
      }
      const id = this.#nextId;
      this.#nextId = (id % 0xffff_fffe) + 1;
      const bytes = encode(id);
      this.#pending.set(id, { answer, resolve, reject });
      this.socket.write(bytes);
    });
  }

  #onFrame(type: number, payload: Buffer): void {
    if (type === LaunchFrame.exited) {
      const exit = wire.decodeLaunchExit(payload);
      for (const listener of this.#exitListeners) listener(exit);
      return;
    }
    const reader = new PayloadReader(payload);
    const id = reader.u32();
    const pending = this.#pending.get(id);
    if (pending === undefined) throw new ProtocolError("answer to no request");
    this.#pending.delete(id);
    if (type === LaunchFrame.failed) pending.reject(new GuestError(reader.u32(), reader.string()));
    else if (type === pending.answer) pending.resolve(reader);
    else throw new ProtocolError("unexpected answer");
  }

  #fail(fault: GuestConnectionError): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    this.socket.destroy();
    for (const pending of this.#pending.values()) pending.reject(fault);
    this.#pending.clear();
    for (const listener of this.#closeListeners) listener(fault);
  }
}
