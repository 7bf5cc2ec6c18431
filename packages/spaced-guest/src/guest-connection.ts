// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { randomBytes, timingSafeEqual } from "node:crypto";
import { connect as connectSocket, type Socket } from "node:net";
import { constants } from "node:os";
import { FetchLane } from "./fetch-lane.ts";
import { FrameExchange } from "./frame-exchange.ts";
import { encodeFrame, maxFrameBytes, PayloadReader, ProtocolError } from "./frames.ts";
import { GuestConnectionError, GuestError } from "./guest-error.ts";
import { GuestProcess, type ProcessHandlers } from "./guest-process.ts";
import * as wire from "./guest-protocol.ts";
import { GuestWatch, type WatchHandlers } from "./guest-watch.ts";

const { GuestFrame } = wire;

/** Who the guest must prove to be. The secret never leaves this process: only MACs under it do. */
export interface GuestCredentials {
  readonly activationId: string;
  readonly secret: Uint8Array;
}

export interface ReadOptions {
  readonly offset?: number;
  /** Bytes wanted; to the end of the file by default. */
  readonly length?: number;
}

/** Receives a streamed file. `onData` may call `pause()` on the connection; `resume()` goes on. */
export interface ReadHandlers {
  onEntry(entry: wire.GuestEntry): void;
  onData(chunk: Buffer): void;
}

/** A file being written. Exactly one of `end` and `abort` finishes it. */
export interface GuestWriter {
  /** False when the socket's buffer is full: wait for `drained()` before the next write. */
  write(chunk: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Resolves with the file's entry when the guest has written everything; rejects with `GuestError` otherwise. */
  end(): Promise<wire.GuestEntry>;
  /** Closes the connection; what was already written stays in the file. */
  abort(): void;
}

const helloDeadlineMs = 10_000;

/**
 * One verified connection to a guest's pid 1. File and query operations follow each other on it, one at a time: starting
 * a second one before the first has settled is a bug and throws. `spawn` has the connection until the process has exited,
 * `fetches` until it is released, `dial` and `watch` for good.
 * Operations reject with `GuestError` (refused; the connection stays usable) or `GuestConnectionError` (discard it).
 */
export class GuestConnection {
  /** The underlying socket, for reading peer credentials from its descriptor. Do not read or write it. */
  readonly socket: Socket;
  readonly #frames: FrameExchange;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.#frames = new FrameExchange(socket);
  }

  /** Opens a socket and verifies the guest; sends nothing but a nonce before it has proved itself. */
  static async connect(socketPath: string, credentials: GuestCredentials): Promise<GuestConnection> {
    const socket = connectSocket({ path: socketPath, allowHalfOpen: true });
    return GuestConnection.over(socket, credentials);
  }

  /** The same over a socket that the caller has opened (with `allowHalfOpen`) and whose peer it may have checked. */
  static over(socket: Socket, credentials: GuestCredentials): Promise<GuestConnection> {
    const connection = new GuestConnection(socket);
    const nonce = randomBytes(wire.nonceBytes);
    const expected = wire.helloMac(credentials.secret, nonce, credentials.activationId);
    const deadline = setTimeout(
      () => connection.#frames.fail(new GuestConnectionError("timeout")),
      helloDeadlineMs,
    );
    socket.write(wire.encodeHello(nonce));
    return connection.#frames
      .answer((type, payload) => {
        if (type !== GuestFrame.helloOk) throw new ProtocolError("expected HELLO_OK");
        const reader = new PayloadReader(payload);
        const activationId = reader.string();
        const mac = reader.fixed(32);
        if (activationId !== credentials.activationId || !timingSafeEqual(mac, expected)) {
          throw new GuestConnectionError("unverified");
        }
        return connection;
      })
      .finally(() => clearTimeout(deadline));
  }

  /** True while another operation may be started. */
  get usable(): boolean {
    return this.#frames.usable;
  }

  /** Whether it has ended, for any reason. */
  get ended(): boolean {
    return this.#frames.ended;
  }

  /** Called once when the connection ends for any reason. */
  onClose(listener: () => void): void {
    if (this.socket.closed) listener();
    else this.socket.once("close", listener);
  }

  /** Ends the connection at once; a running operation rejects. Safe to call repeatedly. */
  destroy(): void {
    this.#frames.destroy();
  }

  stat(path: string): Promise<wire.GuestEntry> {
    this.#frames.send(wire.encodePathRequest(GuestFrame.stat, path));
    return this.#frames.answer(expectEntry);
  }

  /** More than `maxEntries` rejects with EOVERFLOW and ends the connection. */
  async list(path: string, depth = 1, maxEntries = Number.POSITIVE_INFINITY): Promise<wire.GuestEntry[]> {
    const entries: wire.GuestEntry[] = [];
    this.#frames.send(wire.encodeList(path, depth));
    return this.#frames.stream<wire.GuestEntry[]>((type, payload) => {
      if (type === GuestFrame.data) {
        wire.decodeEntries(payload, entries);
        if (entries.length > maxEntries) throw new GuestError(constants.errno.EOVERFLOW, "list");
      } else if (type === GuestFrame.end) return entries;
      else throw new ProtocolError("unexpected frame in LIST");
      return undefined;
    });
  }

  /** Streams a file. Resolves when everything has been handed to `handlers`. */
  readStream(path: string, options: ReadOptions, handlers: ReadHandlers): Promise<void> {
    const length = options.length === undefined ? wire.toTheEnd : BigInt(options.length);
    this.#frames.send(wire.encodeRead(path, BigInt(options.offset ?? 0), length));
    return this.#frames
      .stream<true>((type, payload) => {
        if (type === GuestFrame.data) handlers.onData(payload);
        else if (type === GuestFrame.ok) handlers.onEntry(wire.decodeEntry(new PayloadReader(payload)));
        else if (type === GuestFrame.end) return true;
        else throw new ProtocolError("unexpected frame in READ");
        return undefined;
      })
      .then(() => undefined);
  }

  /** Reads a whole file (or range) into memory; more than `maxBytes` rejects with EFBIG and ends the connection. */
  async readFile(path: string, maxBytes: number, options: ReadOptions = {}): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let total = 0;
    await this.readStream(path, options, {
      onEntry: () => undefined,
      onData: (chunk) => {
        total += chunk.length;
        if (total > maxBytes) throw new GuestError(constants.errno.EFBIG, "read");
        chunks.push(chunk);
      },
    });
    return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, total);
  }

  /** Takes the connection over for any number of small files at once. */
  fetches(): FetchLane {
    const lane = new FetchLane(this.#frames);
    this.#frames.takeOver(lane);
    return lane;
  }

  /** Writes a file whose content is at hand: one write for small ones. */
  writeFile(path: string, options: wire.WriteOptions, content: Uint8Array): Promise<wire.GuestEntry> {
    const inOneWrite = content.length <= wire.dataChunkBytes;
    const request = wire.encodeWrite(path, options, 128 + path.length + (inOneWrite ? content.length : 0));
    if (inOneWrite) {
      if (content.length > 0) request.begin(GuestFrame.data).raw(content).end();
      this.#frames.send(request.begin(GuestFrame.end).end().finish());
      return this.#frames.answer(expectEntry);
    }
    this.#frames.send(request.finish());
    const answer = this.#frames.answer(expectEntry);
    for (let at = 0; at < content.length; at += wire.dataChunkBytes) {
      this.socket.write(encodeFrame(GuestFrame.data, content.subarray(at, at + wire.dataChunkBytes)));
    }
    this.socket.write(encodeFrame(GuestFrame.end));
    return answer;
  }

  /** Starts writing a file whose content arrives over time. The connection is busy until the writer is ended. */
  writeStream(path: string, options: wire.WriteOptions): GuestWriter {
    const { socket } = this;
    this.#frames.send(wire.encodeWrite(path, options).finish());
    const answer = this.#frames.answer(expectEntry);
    answer.catch(() => undefined); // reported by end(); the writer may be aborted without it
    return {
      write: (chunk) => {
        let more = true;
        for (let at = 0; at < chunk.length; at += maxFrameBytes) {
          more = socket.write(encodeFrame(GuestFrame.data, chunk.subarray(at, at + maxFrameBytes)));
        }
        return more;
      },
      drained: () => this.#frames.drained(),
      end: () => {
        socket.write(encodeFrame(GuestFrame.end));
        return answer;
      },
      abort: () => this.destroy(),
    };
  }

  /** mkdir -p. Rejects with EEXIST when the directory is there, ENOTDIR when a file is in the way. */
  mkdir(path: string, owner: { readonly uid: number; readonly gid: number }): Promise<void> {
    this.#frames.send(wire.encodeMkdir(path, owner.uid, owner.gid));
    return this.#frames.answer(expectOk);
  }

  /** Missing parents of `to` are made with the given owner. Resolves with the entry at `to`. */
  rename(
    from: string,
    to: string,
    owner: { readonly uid: number; readonly gid: number },
  ): Promise<wire.GuestEntry> {
    this.#frames.send(wire.encodeRename(from, to, owner.uid, owner.gid));
    return this.#frames.answer(expectEntry);
  }

  /** Recursive; a missing path is no error; symlinks are removed, never followed. */
  remove(path: string): Promise<void> {
    this.#frames.send(wire.encodePathRequest(GuestFrame.remove, path));
    return this.#frames.answer(expectOk);
  }

  /** Flushes the guest's file system as far as its mount promises. */
  sync(): Promise<void> {
    this.#frames.send(encodeFrame(GuestFrame.sync));
    return this.#frames.answer(expectOk);
  }

  statfs(): Promise<{ readonly totalBytes: number; readonly availableBytes: number }> {
    this.#frames.send(encodeFrame(GuestFrame.statfs));
    return this.#frames.answer((type, payload) => {
      expectOk(type, payload);
      const reader = new PayloadReader(payload);
      return { totalBytes: Number(reader.u64()), availableBytes: Number(reader.u64()) };
    });
  }

  /** Sends a signal to every process of the guest but its pid 1. */
  killAll(signal: number): Promise<void> {
    const payload = Buffer.allocUnsafe(4);
    payload.writeUInt32LE(signal);
    this.#frames.send(encodeFrame(GuestFrame.killAll, payload));
    return this.#frames.answer(expectOk);
  }

  /** Gives the guest a new identity. Its other connections are closed by it (see `attach`); this one goes on. */
  rekey(current: GuestCredentials, next: GuestCredentials): Promise<void> {
    this.#frames.send(wire.encodeRekey(current.secret, next.secret, next.activationId));
    return this.#frames.answer(expectOk);
  }

  /**
   * The guest lets go of its socket and of every connection, this one too, so that the kernel below it can be saved.
   * Its processes wait as after a rekey. ENOSYS where the socket is the host's.
   */
  async quiesce(): Promise<void> {
    this.#frames.send(encodeFrame(GuestFrame.quiesce));
    await this.#frames.answer(expectOk);
    this.destroy();
  }

  /**
   * Nobody will `attach` to the processes that wait for it: from now on what they say is dropped, and they go on.
   */
  forsake(): Promise<void> {
    this.#frames.send(encodeFrame(GuestFrame.forsake));
    return this.#frames.answer(expectOk);
  }

  /**
   * Starts a process, which has the connection until it exits. Rejects with `GuestError` when the process could not be
   * started (the connection stays usable). The process dies with the connection.
   */
  spawn(request: wire.SpawnRequest, handlers: ProcessHandlers): Promise<GuestProcess> {
    let frame: Buffer;
    try {
      frame = wire.encodeSpawn(request);
    } catch (cause) {
      if (cause instanceof ProtocolError)
        return Promise.reject(new GuestError(constants.errno.E2BIG, "exec"));
      throw cause;
    }
    this.#frames.send(frame);
    return this.#becomeProcess(({ pid }) => new GuestProcess(this.#frames, pid, handlers));
  }

  /**
   * Takes over a process whose connection ended with a rekey. Its output goes on where it stopped and its input too,
   * each byte once; the handlers stay. ESRCH when there is no such process or another connection has it.
   */
  attach(process: GuestProcess): Promise<GuestProcess> {
    const payload = Buffer.allocUnsafe(4);
    payload.writeUInt32LE(process.pid);
    this.#frames.send(encodeFrame(GuestFrame.attach, payload));
    return this.#becomeProcess((started) => process.goOn(this.#frames, started));
  }

  /**
   * Watches a folder; takes the connection over when it succeeds. Rejects with `GuestError`: ENOENT, ENOTDIR, EOPNOTSUPP
   * for a network mount, ENOSPC when there are too many folders, ENOSYS where watching is not supported.
   */
  watch(path: string, options: wire.WatchOptions, handlers: WatchHandlers): Promise<GuestWatch> {
    this.#frames.send(wire.encodeWatch(path, options));
    return this.#frames.answer((type, payload) => {
      expectOk(type, payload);
      const watch = new GuestWatch(this.#frames, handlers);
      this.#frames.takeOver(watch);
      return watch;
    });
  }

  /** Connects to a TCP port on the guest's loopback. Resolves with the socket, from then on a raw
   * duplex pipe, paused: `resume`, `pipe` or iterate it. */
  dial(port: number): Promise<Socket> {
    const payload = Buffer.allocUnsafe(2);
    payload.writeUInt16LE(port);
    this.#frames.send(encodeFrame(GuestFrame.dial, payload));
    return this.#frames.answer((type, answer) => {
      expectOk(type, answer);
      return this.#frames.release();
    });
  }

  /** Stops and restarts reading from the guest (back-pressure). */
  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  #becomeProcess(make: (started: wire.ProcessStart) => GuestProcess): Promise<GuestProcess> {
    return this.#frames.answer((type, payload) => {
      if (type !== GuestFrame.started) throw new ProtocolError("expected STARTED");
      const process = make(wire.decodeStarted(payload));
      this.#frames.takeOver(process);
      return process;
    });
  }
}

function expectOk(type: number, _payload: Buffer): void {
  if (type !== GuestFrame.ok) throw new ProtocolError("expected OK");
}

function expectEntry(type: number, payload: Buffer): wire.GuestEntry {
  if (type !== GuestFrame.ok) throw new ProtocolError("expected OK");
  return wire.decodeEntry(new PayloadReader(payload));
}
