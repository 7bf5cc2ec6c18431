// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHmac, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import { constants } from "node:os";
import { type Duplex, duplexPair } from "node:stream";
import { encodeFrame, FrameBuilder, FrameParser, GuestFrame, PayloadReader } from "@space/spaced-guest";
import { FakeErrno, type FakeFile, FakeFiles } from "./fake-guest-files.ts";
import { decodeSpawn, FakeProcess, type FakeProgram } from "./fake-process.ts";
import { type FakeWatch, fakeWatch } from "./fake-watch.ts";

export interface FakeGuestOptions {
  readonly activationId: string;
  readonly secret: Uint8Array;
  readonly peer?: { readonly pid: number; readonly uid: number; readonly startTime: string };
}

const dataBytes = 64 * 1024;

/**
 * A guest's pid 1 in memory: files, processes that are functions, and ports. It speaks the guest protocol as
 * PROTOCOL.md has it, over pairs of streams instead of a Unix socket.
 */
export class FakeGuest {
  readonly files = new FakeFiles();
  /** Programs by argv[0]; any other is ENOENT at the step "exec". */
  readonly programs = new Map<string, FakeProgram>();
  readonly processes = new Map<number, FakeProcess>();
  /** Every process ever started, in order. */
  readonly started: FakeProcess[] = [];
  /** Requests received, by frame type, in order. */
  readonly requests: number[] = [];
  /** What a hostile guest sends for a request of this type, whatever was asked. */
  readonly lies = new Map<number, Buffer>();
  /** Folders that are watched now, in the order of their WATCH. */
  readonly watches: FakeWatch[] = [];
  /** From now on it takes requests, and answers none; what runs goes on. */
  answersNothing = false;
  readonly ports = new Map<number, (connection: Duplex) => void>();
  peer: { pid: number; uid: number; startTime: string };
  activationId: string;
  #secret: Uint8Array;
  #nextPid = 2;
  readonly #connections = new Set<FakeConnection>();
  #dead = false;

  constructor(options: FakeGuestOptions) {
    this.activationId = options.activationId;
    this.#secret = options.secret;
    this.peer = { pid: 4242, uid: 100_000, startTime: "123456", ...options.peer };
    this.files.mkdir("/home/user", { uid: 1000, gid: 1000 }, true);
    this.files.mkdir("/root", { uid: 0, gid: 0 }, true);
    this.files.write(
      "/etc/passwd",
      "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:,,,:/home/user:/bin/bash\n",
    );
    this.files.write("/etc/group", "root:x:0:\nuser:x:1000:\nsudo:x:27:user\n");
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Opens a connection, as a bridge does; rejects when the guest is dead. */
  readonly connect = async (): Promise<{ socket: Socket; peer: FakeGuest["peer"] }> => {
    if (this.#dead) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const [near, far] = duplexPair();
    this.#connections.add(new FakeConnection(this, far));
    return { socket: near as Socket, peer: this.peer }; // cast: what is used of a socket is a Duplex's
  };

  /** The guest's pid 1 dies: every connection ends. */
  die(): void {
    this.#dead = true;
    for (const connection of this.#connections) connection.close();
  }

  mac(nonce: Buffer): Buffer {
    return this.#hmac("space-guest-hello\0", nonce, this.activationId);
  }

  rekey(reader: PayloadReader, by: FakeConnection): void {
    const mac = reader.fixed(32);
    const rest = reader.rest();
    if (!timingSafeEqual(mac, this.#hmac("space-guest-rekey\0", rest)))
      throw new FakeErrno("EACCES", "rekey");
    const fields = new PayloadReader(rest);
    this.#secret = Buffer.from(fields.fixed(32));
    this.activationId = fields.string();
    for (const connection of this.#connections) if (connection !== by) connection.close();
  }

  /** Lets go of every connection, so that it can be saved; nobody is let in until it is restored. */
  quiesce(): void {
    this.#dead = true;
    for (const connection of this.#connections) connection.close();
  }

  /** Somebody else from now on, with the same processes; those that nobody takes up say nothing. */
  restore(activationId: string, secret: Uint8Array): void {
    this.#dead = false;
    this.activationId = activationId;
    this.#secret = secret;
    this.peer = { ...this.peer, pid: this.peer.pid + 1 };
  }

  spawn(reader: PayloadReader): FakeProcess {
    const spawn = decodeSpawn(reader);
    const program = this.programs.get(spawn.argv[0] ?? "");
    let directory: string;
    try {
      directory = this.files.find(spawn.cwd).kind;
    } catch {
      throw new FakeErrno("ENOENT", "chdir");
    }
    if (directory !== "directory") throw new FakeErrno("ENOTDIR", "chdir");
    if (program === undefined) throw new FakeErrno("ENOENT", "exec");
    const pid = this.#nextPid;
    this.#nextPid += 1;
    const process = new FakeProcess(pid, spawn, () => this.processes.delete(pid));
    this.processes.set(pid, process);
    this.started.push(process);
    return process;
  }

  /** Sets the pid that the next process gets. */
  reusePid(pid: number): void {
    this.#nextPid = pid;
  }

  forget(connection: FakeConnection): void {
    this.#connections.delete(connection);
  }

  #hmac(...parts: (string | Buffer)[]): Buffer {
    const hmac = createHmac("sha256", this.#secret);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  }
}

/** One connection's server side. */
export class FakeConnection {
  readonly #guest: FakeGuest;
  readonly #stream: Duplex;
  readonly #parser: FrameParser;
  #trusted = false;
  #process: FakeProcess | undefined;
  #writing: { file: FakeFile; path: string; failed: FakeErrno | undefined } | undefined;
  #serving: Promise<void> = Promise.resolve();

  constructor(guest: FakeGuest, stream: Duplex) {
    this.#guest = guest;
    this.#stream = stream;
    // One frame after the other: a request's DATA never overtakes it.
    this.#parser = new FrameParser((type, payload) => {
      this.#serving = this.#serving.then(() => this.#receive(type, payload));
    });
    stream.on("data", this.#onData);
    stream.on("end", this.#onEnd);
    stream.on("close", this.#onEnd);
    stream.on("error", () => undefined);
  }

  readonly #onData = (chunk: Buffer): void => this.#parser.push(chunk);

  readonly #onEnd = (): void => {
    this.close();
    if (this.#process !== undefined && this.#process.exited === false) this.#process.kill(9);
  };

  close(): void {
    this.#process?.detach();
    this.#guest.forget(this);
    this.#stream.off("end", this.#onEnd);
    this.#stream.off("close", this.#onEnd);
    this.#stream.end();
    this.#stream.destroy();
  }

  async #receive(type: number, payload: Buffer): Promise<void> {
    const reader = new PayloadReader(payload);
    if (this.#process?.exited === true) this.#process = undefined;
    if (this.#process !== undefined) return this.#process.receive(type, reader);
    if (this.#trusted && isForProcess(type)) return; // it has ended meanwhile
    if (this.#writing !== undefined && (type === GuestFrame.data || type === GuestFrame.end)) {
      return type === GuestFrame.data ? this.#write(payload) : this.#written();
    }
    if (!this.#trusted && type !== GuestFrame.hello) return this.close();
    this.#guest.requests.push(type);
    if (this.#guest.answersNothing && type !== GuestFrame.hello) return;
    const lie = this.#guest.lies.get(type);
    if (lie !== undefined) return void this.#stream.write(lie);
    try {
      await this.#operate(type, reader);
    } catch (error) {
      if (!(error instanceof FakeErrno)) throw error;
      this.#stream.write(errorFrame(error));
    }
  }

  async #operate(type: number, reader: PayloadReader): Promise<void> {
    const { files } = this.#guest;
    switch (type) {
      case GuestFrame.hello: {
        this.#trusted = true;
        const mac = this.#guest.mac(reader.fixed(32));
        const answer = new FrameBuilder().begin(GuestFrame.helloOk).string(this.#guest.activationId).raw(mac);
        this.#stream.write(answer.end().finish());
        return;
      }
      case GuestFrame.rekey:
        this.#guest.rekey(reader, this);
        return this.#ok();
      case GuestFrame.quiesce:
        this.#ok();
        return this.#guest.quiesce();
      case GuestFrame.stat:
        return this.#entry(reader.string());
      case GuestFrame.list:
        return this.#list(reader.string(), reader.u32());
      case GuestFrame.read:
        return this.#read(reader.string(), Number(reader.u64()), Number(reader.u64()));
      case GuestFrame.fetch:
        return this.#fetch(reader.string(), reader.u32());
      case GuestFrame.write:
        return this.#beginWrite(reader);
      case GuestFrame.mkdir: {
        files.mkdir(reader.string(), { uid: reader.u32(), gid: reader.u32() }, false);
        this.#stream.write(encodeFrame(GuestFrame.ok, Buffer.from([1])));
        return;
      }
      case GuestFrame.rename: {
        const from = reader.string();
        const to = reader.string();
        files.rename(from, to, { uid: reader.u32(), gid: reader.u32() });
        return this.#entry(to);
      }
      case GuestFrame.remove:
        files.remove(reader.string());
        return this.#ok();
      default:
        return this.#operateMore(type, reader);
    }
  }

  #operateMore(type: number, reader: PayloadReader): void {
    switch (type) {
      case GuestFrame.sync:
      case GuestFrame.killAll:
      case GuestFrame.forsake:
        return this.#ok();
      case GuestFrame.statfs:
        this.#stream.write(new FrameBuilder().begin(GuestFrame.ok).u64(10_000n).u64(4_000n).end().finish());
        return;
      case GuestFrame.spawn: {
        const process = this.#guest.spawn(reader);
        this.#hold(process);
        this.#guest.programs.get(process.spawn.argv[0] ?? "")?.(process);
        return;
      }
      case GuestFrame.attach: {
        const wanted = reader.u32();
        const process = this.#guest.started.findLast(({ pid }) => pid === wanted);
        if (process === undefined) throw new FakeErrno("ESRCH", "attach");
        return this.#hold(process);
      }
      case GuestFrame.watch:
        return this.#watch(reader.string(), reader.u8());
      case GuestFrame.dial:
        return this.#dial(reader.u16());
      default:
        this.close();
    }
  }

  #hold(process: FakeProcess): void {
    this.#process = process;
    process.attach({
      write: (frame) => this.#stream.write(frame),
      onDrain: (listener) => void this.#stream.on("drain", listener),
    });
  }

  #watch(path: string, flags: number): void {
    if (this.#guest.files.find(path).kind !== "directory") throw new FakeErrno("ENOTDIR", "watch");
    this.#ok();
    this.#guest.watches.push(fakeWatch({ path, flags }, this.#stream));
  }

  #dial(port: number): void {
    const serve = this.#guest.ports.get(port);
    if (serve === undefined) throw new FakeErrno("ECONNREFUSED", "connect");
    this.#ok();
    const leftover = this.#parser.stop();
    const early = leftover();
    this.#stream.off("data", this.#onData);
    this.#stream.off("end", this.#onEnd);
    if (early.length > 0) this.#stream.unshift(early);
    serve(this.#stream);
  }

  #list(path: string, depth: number): void {
    const frame = new FrameBuilder().begin(GuestFrame.data);
    for (const child of this.#guest.files.list(path.replace(/\/+$/, "") || "/", depth)) {
      this.#guest.files.encodeEntry(frame, child);
    }
    this.#stream.write(frame.end().begin(GuestFrame.end).end().finish());
  }

  async #read(path: string, offset: number, length: number): Promise<void> {
    const content = this.#guest.files.read(path).subarray(offset, offset + length);
    const head = new FrameBuilder().begin(GuestFrame.ok);
    this.#stream.write(this.#guest.files.encodeEntry(head, path).end().finish());
    for (let at = 0; at < content.length; at += dataBytes) {
      const more = this.#stream.write(encodeFrame(GuestFrame.data, content.subarray(at, at + dataBytes)));
      if (!more) await this.#drained();
    }
    this.#stream.write(encodeFrame(GuestFrame.end));
  }

  #fetch(path: string, limit: number): void {
    const { files } = this.#guest;
    const content = files.read(path);
    if (content.length > limit) throw new FakeErrno("EFBIG", "read");
    const { modifiedAtMs } = files.find(path);
    const seconds = Math.floor(modifiedAtMs / 1000);
    const frame = new FrameBuilder().begin(GuestFrame.content).u64(BigInt(content.length));
    frame.i64(BigInt(seconds)).u32(Math.round((modifiedAtMs - seconds * 1000) * 1e6));
    this.#stream.write(frame.raw(content).end().finish());
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#stream.off("drain", done).off("close", done);
        resolve();
      };
      this.#stream.on("drain", done).on("close", done);
    });
  }

  #beginWrite(reader: PayloadReader): void {
    const path = reader.string();
    const mode = reader.u32();
    const owner = { uid: reader.u32(), gid: reader.u32() };
    const makeParents = reader.u8() !== 0;
    const append = reader.u8() !== 0;
    const nowhere: FakeFile = { kind: "file", content: Buffer.alloc(0), mode, ...owner, modifiedAtMs: 0 };
    try {
      const file = this.#guest.files.create(path, { owner, mode, makeParents, append });
      this.#writing = { file, path, failed: undefined };
    } catch (error) {
      if (!(error instanceof FakeErrno)) throw error;
      this.#writing = { file: nowhere, path, failed: error };
    }
  }

  #write(chunk: Buffer): void {
    const writing = this.#writing;
    if (writing === undefined || writing.failed !== undefined) return;
    try {
      this.#guest.files.append(writing.file, chunk);
    } catch (error) {
      writing.failed = error as FakeErrno;
    }
  }

  #written(): void {
    const writing = this.#writing;
    this.#writing = undefined;
    if (writing?.failed !== undefined) this.#stream.write(errorFrame(writing.failed));
    else if (writing !== undefined) this.#entry(writing.path);
  }

  #entry(path: string): void {
    const frame = new FrameBuilder().begin(GuestFrame.ok);
    this.#stream.write(this.#guest.files.encodeEntry(frame, path).end().finish());
  }

  #ok(): void {
    this.#stream.write(encodeFrame(GuestFrame.ok));
  }
}

function errorFrame({ errno, step }: FakeErrno): Buffer {
  return new FrameBuilder().begin(GuestFrame.error).u32(errno).string(step).end().finish();
}

/** For tests that send errors of their own. */
export const fakeErrnos = constants.errno;

function isForProcess(type: number): boolean {
  return type >= GuestFrame.stdin && type <= GuestFrame.resize;
}
