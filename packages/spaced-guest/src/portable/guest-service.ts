// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { encodeFrame, FrameBuilder, PayloadReader, ProtocolError } from "../frames.ts";
import { GuestError } from "../guest-error.ts";
import { GuestFrame, helloMac, nonceBytes, rekeyMac, secretBytes } from "../guest-protocol.ts";
import { answerFetch, answerRead, answerWrite } from "./file-content.ts";
import { answerList, answerMakeFolder } from "./folders.ts";
import { during, errnoOf } from "./libc.ts";
import { answerRemove, answerRename, answerStat, answerStatfs, answerSync } from "./path-operations.ts";
import { type Frame, PeerConnection, takeText } from "./peer-connection.ts";
import { answerDial } from "./port-dial.ts";
import { ProcessSession } from "./process-session.ts";
import { decodeSpawn, startProcess } from "./process-start.ts";

const maxActivationBytes = 256;
const macBytes = 32;
const errnoNoProcess = 3;
const errnoNotImplemented = 38;
const errnoAccess = 13;
const errnoInvalid = 22;

/** What is for a process may come when that has ended: it is dropped. */
const forProcesses: readonly number[] = [
  GuestFrame.stdin,
  GuestFrame.stdinEof,
  GuestFrame.signal,
  GuestFrame.resize,
];

type Operation = (connection: PeerConnection, payload: PayloadReader) => Promise<void>;

/** The guest's side of the guest protocol: PROTOCOL.md section 1. Everything in a frame is hostile. */
export class GuestService {
  #activationId: string;
  #secret: Buffer;
  #epoch = 0;
  readonly #connections = new Set<PeerConnection>();
  readonly #processes = new Map<number, ProcessSession>();
  readonly #operations: ReadonlyMap<number, Operation> = new Map<number, Operation>([
    [GuestFrame.stat, answerStat],
    [GuestFrame.list, answerList],
    [GuestFrame.read, answerRead],
    [GuestFrame.fetch, answerFetch],
    [GuestFrame.write, answerWrite],
    [GuestFrame.mkdir, answerMakeFolder],
    [GuestFrame.rename, answerRename],
    [GuestFrame.remove, answerRemove],
    [GuestFrame.sync, answerSync],
    [GuestFrame.statfs, answerStatfs],
    [GuestFrame.dial, answerDial],
    [GuestFrame.spawn, (connection, payload) => this.#spawn(connection, payload)],
    [GuestFrame.attach, (connection, payload) => this.#attach(connection, payload)],
    [GuestFrame.watch, () => Promise.reject(new GuestError(errnoNotImplemented, "watch"))],
    [GuestFrame.quiesce, () => Promise.reject(new GuestError(errnoNotImplemented, "quiesce"))],
    // It cannot be restored, so nothing here waits for an owner that will not come.
    [GuestFrame.forsake, async (connection) => connection.send(encodeFrame(GuestFrame.ok))],
    [GuestFrame.killAll, (connection, payload) => this.#killAll(connection, payload)],
    [GuestFrame.rekey, (connection, payload) => this.#rekey(connection, payload)],
    ...forProcesses.map((type): [number, Operation] => [type, () => Promise.resolve()]),
  ]);

  constructor(activationId: string, secret: Buffer) {
    this.#activationId = activationId;
    this.#secret = secret;
  }

  /** Serves one connection to its end. Never rejects. */
  async serve(socket: Socket): Promise<void> {
    const connection = new PeerConnection(socket);
    this.#connections.add(connection);
    try {
      if (!(await this.#sayHello(connection))) return;
      for (let frame = await connection.next(); frame !== undefined; frame = await connection.next()) {
        await this.#answer(connection, frame);
      }
    } catch {
      // it broke the protocol
    } finally {
      connection.leave();
      this.#connections.delete(connection);
    }
  }

  async #answer(connection: PeerConnection, { type, payload }: Frame): Promise<void> {
    const operation = this.#operations.get(type);
    if (operation === undefined) throw new ProtocolError("no such operation");
    try {
      await operation(connection, new PayloadReader(payload));
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      await connection.sendError(error);
    }
  }

  async #sayHello(connection: PeerConnection): Promise<boolean> {
    const frame = await connection.next();
    if (frame?.type !== GuestFrame.hello || frame.payload.length !== nonceBytes) return false;
    connection.epoch = this.#epoch;
    const mac = helloMac(this.#secret, frame.payload, this.#activationId);
    const answer = new FrameBuilder(128).begin(GuestFrame.helloOk).string(this.#activationId).raw(mac);
    await connection.send(answer.end().finish());
    return true;
  }

  async #rekey(connection: PeerConnection, payload: PayloadReader): Promise<void> {
    const mac = payload.fixed(macBytes);
    const rest = payload.rest();
    const genuine = timingSafeEqual(mac, rekeyMac(this.#secret, rest)) && connection.epoch === this.#epoch;
    if (!genuine) throw new GuestError(errnoAccess, "rekey");
    const reader = new PayloadReader(rest);
    const secret = Buffer.from(reader.fixed(secretBytes));
    const activationId = takeText(reader);
    if (!reader.atEnd || Buffer.byteLength(activationId) > maxActivationBytes)
      throw new GuestError(errnoInvalid, "rekey");
    rest.fill(0);
    this.#secret = secret;
    this.#activationId = activationId;
    this.#epoch += 1;
    connection.epoch = this.#epoch;
    for (const other of this.#connections) if (other !== connection) other.retire();
    await connection.send(encodeFrame(GuestFrame.ok));
  }

  async #killAll(connection: PeerConnection, payload: PayloadReader): Promise<void> {
    const signal = payload.u32();
    try {
      // From pid 1, -1 means every process of the namespace but pid 1 itself.
      during("kill", () => process.kill(-1, signal));
    } catch (error) {
      if (errnoOf(error) !== errnoNoProcess) throw error; // there was none: fine
    }
    await connection.send(encodeFrame(GuestFrame.ok));
  }

  async #spawn(connection: PeerConnection, payload: PayloadReader): Promise<void> {
    const started = await startProcess(decodeSpawn(payload));
    const session = new ProcessSession(started, () => this.#processes.delete(started.pid));
    this.#processes.set(started.pid, session);
    await this.#own(connection, session);
  }

  async #attach(connection: PeerConnection, payload: PayloadReader): Promise<void> {
    const session = this.#processes.get(payload.u32());
    if (session?.waiting !== true) throw new GuestError(errnoNoProcess, "attach");
    await this.#own(connection, session);
  }

  async #own(connection: PeerConnection, session: ProcessSession): Promise<void> {
    const isRekeyed = (): boolean => connection.epoch !== this.#epoch;
    if (!(await session.serve(connection, isRekeyed))) connection.leave();
  }
}
