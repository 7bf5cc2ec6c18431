// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  encodeFrame,
  encodeStarted,
  FrameBuilder,
  GuestFrame,
  type PayloadReader,
} from "@space/spaced-guest";

/** What a SPAWN asked for. */
export interface FakeSpawn {
  readonly stdin: boolean;
  readonly pty: { readonly cols: number; readonly rows: number } | undefined;
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
  readonly cwd: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The program that a fake process runs, instead of one from a disk. */
export type FakeProgram = (process: FakeProcess) => void;

export function decodeSpawn(reader: PayloadReader): FakeSpawn {
  const flags = reader.u32();
  const uid = reader.u32();
  const gid = reader.u32();
  const groups = Array.from({ length: reader.u32() }, () => reader.u32());
  const cwd = reader.string();
  const argv = Array.from({ length: reader.u32() }, () => reader.string());
  const pairs = Array.from({ length: reader.u32() }, () => reader.string());
  const env = Object.fromEntries(
    pairs.map((pair) => [pair.split("=", 1)[0], pair.slice(pair.indexOf("=") + 1)]),
  );
  const size = { cols: reader.u16(), rows: reader.u16() };
  return {
    stdin: (flags & 1) !== 0,
    pty: (flags & 2) !== 0 ? size : undefined,
    uid,
    gid,
    groups,
    cwd,
    argv,
    env,
  };
}

/** Where a fake process's frames go while a connection holds it; `write` is false while the connection is full. */
export interface FakeProcessLink {
  write(frame: Buffer): boolean;
  onDrain(listener: () => void): void;
}

const frameHeaderBytes = 5;

type Output = "stdout" | "stderr" | "pty";

/** A process of a fake guest: what its program does becomes frames. */
export class FakeProcess {
  readonly pid: number;
  readonly spawn: FakeSpawn;
  /** Signals received, in order. */
  readonly signals: number[] = [];
  readonly inputs: Buffer[] = [];
  size: { cols: number; rows: number } | undefined;
  inputEnded = false;
  /** Set by a program that handles its own signals: returns whether it did. SIGKILL is never asked. */
  onSignal: (signal: number) => boolean = () => false;
  /** Set by a program that reads; false: not taken yet, call `takeInput` later. */
  onInput: (chunk: Buffer) => boolean = () => true;
  onInputEnd: () => void = () => undefined;
  #link: FakeProcessLink | undefined;
  /** Frames that no connection has taken yet: a detached process's output waits, and its end. */
  readonly #waiting: Buffer[] = [];
  readonly #drain: (() => void)[] = [];
  #exited = false;
  readonly #onExit: () => void;

  constructor(pid: number, spawn: FakeSpawn, onExit: () => void) {
    this.pid = pid;
    this.spawn = spawn;
    this.size = spawn.pty;
    this.#onExit = onExit;
  }

  get exited(): boolean {
    return this.#exited;
  }

  #outputBytes = 0;
  #inputBytes = 0;

  /** Resolves when the connection has room: a program that waits feels back-pressure as a full pipe. */
  output(kind: Output, bytes: Buffer | string): Promise<void> {
    const type = { stdout: GuestFrame.stdout, stderr: GuestFrame.stderr, pty: GuestFrame.pty }[kind];
    return this.#send(encodeFrame(type, Buffer.from(bytes)));
  }

  exit(code: number): void {
    this.#end(0, code);
  }

  exitBySignal(signal: number): void {
    this.#end(1, signal);
  }

  takeInput(bytes: number): void {
    void this.#send(new FrameBuilder(16).begin(GuestFrame.stdinTaken).u32(bytes).end().finish());
  }

  /** A connection holds the process from now on. */
  attach(link: FakeProcessLink): void {
    this.#link = link;
    link.write(
      encodeStarted({ pid: this.pid, stdinReceived: this.#inputBytes, outputOffset: this.#outputBytes }),
    );
    link.onDrain(() => {
      for (const resolve of this.#drain.splice(0)) resolve();
    });
    for (const frame of this.#waiting.splice(0)) void this.#send(frame);
    for (const resolve of this.#drain.splice(0)) resolve();
  }

  detach(): void {
    this.#link = undefined;
  }

  receive(type: number, reader: PayloadReader): void {
    switch (type) {
      case GuestFrame.stdin: {
        const chunk = Buffer.from(reader.rest());
        this.#inputBytes += chunk.length;
        this.inputs.push(chunk);
        if (this.onInput(chunk)) this.takeInput(chunk.length);
        return;
      }
      case GuestFrame.stdinEof:
        this.inputEnded = true;
        this.onInputEnd();
        return;
      case GuestFrame.signal:
        this.kill(reader.u32());
        return;
      case GuestFrame.resize:
        this.size = { cols: reader.u16(), rows: reader.u16() };
        return;
      default:
        throw new TypeError(`no such frame for a process: ${type}`);
    }
  }

  kill(signal: number): void {
    this.signals.push(signal);
    if (signal === 9 || !this.onSignal(signal)) this.exitBySignal(signal);
  }

  #end(bySignal: number, value: number): void {
    if (this.#exited) return;
    this.#exited = true;
    void this.#send(new FrameBuilder(16).begin(GuestFrame.exited).u8(bySignal).u32(value).end().finish());
    this.#onExit();
  }

  #send(frame: Buffer): Promise<void> {
    const link = this.#link;
    if (link === undefined) this.#waiting.push(frame);
    else if (isOutput(frame)) this.#outputBytes += frame.length - frameHeaderBytes;
    if (link === undefined) return new Promise((resolve) => this.#drain.push(resolve));
    if (link.write(frame)) return Promise.resolve();
    return new Promise((resolve) => this.#drain.push(resolve));
  }
}

function isOutput(frame: Buffer): boolean {
  const type = frame[frameHeaderBytes - 1];
  return type === GuestFrame.stdout || type === GuestFrame.stderr || type === GuestFrame.pty;
}
