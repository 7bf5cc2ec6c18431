// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type HostOperationHead, type LinkStream, readPosition, type StreamHandlers } from "@space/wire";
import { type GuestPorts, ignoring, operationOf } from "./sim-guest.ts";
import type { SimProcess } from "./sim-machine.ts";

/** Most pieces that a simulated process prints. */
const mostPieces = 6;
const start = "/process.Process/Start";
const connect = "/process.Process/Connect";
const endOfStream = 2;

const answerHead = JSON.stringify({ status: 200, headers: ["content-type", "application/connect+json"] });
const lostHead = JSON.stringify({ status: 503, headers: [], streamLost: true });

/** A message of a stream, as Connect frames it. */
export function envelope(flags: number, text: string): Buffer {
  const message = Buffer.from(text);
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

/** What one started program prints. It goes on, and keeps what it printed, while nobody listens. */
class Program {
  readonly process: SimProcess;
  readonly operation: number;
  printed = Buffer.alloc(0);
  #pieces = 0;
  isOver = false;
  listener: LinkStream | undefined;

  constructor(process: SimProcess, operation: number) {
    this.process = process;
    this.operation = operation;
    this.#print(envelope(0, `${process.uid}|${process.files}`));
  }

  /** One more piece, which says its number: nothing may be missing, and nothing come twice. */
  piece(): void {
    this.#pieces += 1;
    this.#print(envelope(0, `#${this.#pieces}`));
  }

  end(): void {
    this.#print(envelope(endOfStream, "{}"));
    this.isOver = true;
    this.listener?.end();
  }

  #print(bytes: Buffer): void {
    this.printed = Buffer.concat([this.printed, bytes]);
    this.listener?.send(bytes);
  }
}

/** the programs that a bridge knows by the names of their exchanges. */
export class GuestStreams {
  readonly #ports: GuestPorts;
  readonly #programs = new Map<string, Program>();

  constructor(ports: GuestPorts) {
    this.#ports = ports;
  }

  isStream({ path }: HostOperationHead): boolean {
    return path === start || path === connect;
  }

  open(stream: LinkStream, process: SimProcess, head: HostOperationHead): StreamHandlers {
    const position = readPosition(head.headers);
    if (position === undefined) {
      stream.reset("protocol");
      return ignoring;
    }
    const { key, answerOffset } = position;
    const known = this.#programs.get(key);
    if (known !== undefined && known.process === process && answerOffset !== undefined)
      return this.#attach(known, stream, answerOffset);
    const isFirst = head.path === start && answerOffset === undefined && known === undefined;
    if (isFirst)
      return new StartOperation(this.#ports, stream, () => this.#start(key, stream, process, head));
    stream.sendHead(lostHead, true);
    return ignoring;
  }

  #start(key: string, stream: LinkStream, process: SimProcess, head: HostOperationHead): Program | undefined {
    const { loop, watcher, random, owner } = this.#ports;
    if (process.state !== "running") {
      stream.reset("execution-gone");
      return undefined;
    }
    const number = operationOf(head);
    process.files += ` ${number}`;
    watcher.acted(number, process);
    const program = new Program(process, number);
    this.#programs.set(key, program);
    // What nobody comes back for is forgotten, as the real bridge does.
    loop.after(300_000, owner, () => this.#programs.delete(key));
    this.#run(program, random.below(mostPieces));
    return program;
  }

  #attach(program: Program, stream: LinkStream, offset: number): StreamHandlers {
    if (offset > program.printed.length) {
      stream.sendHead(lostHead, true);
      return ignoring;
    }
    program.listener?.reset("cancelled");
    this.#ports.watcher.attached(program.operation, program.process);
    return listen(program, stream, offset);
  }

  #run(program: Program, left: number): void {
    const { loop, owner, random, watcher } = this.#ports;
    loop.after(random.between(200, 12_000), owner, () => {
      const { state, fenced } = program.process;
      if (state === "gone") return program.listener?.reset("execution-gone");
      if (state === "frozen" || fenced) return this.#run(program, left);
      if (program.listener !== undefined) watcher.streamed(program.operation, program.process);
      if (left === 0) return program.end();
      program.piece();
      this.#run(program, left - 1);
    });
  }
}

/** Waits for the whole request, then starts. */
class StartOperation implements StreamHandlers {
  readonly #stream: LinkStream;
  readonly #start: () => Program | undefined;
  readonly #ports: GuestPorts;
  #handlers: StreamHandlers = ignoring;
  #over = false;

  constructor(ports: GuestPorts, stream: LinkStream, begin: () => Program | undefined) {
    this.#ports = ports;
    this.#stream = stream;
    this.#start = begin;
  }

  onData(chunk: Buffer): void {
    this.#stream.consumed(chunk.length);
  }

  onEnd(): void {
    const { loop, owner, random } = this.#ports;
    if (random.chance(0.2)) loop.after(random.between(0, 40), owner, () => this.#begin());
    else this.#begin();
  }

  onReset(reason: string): void {
    this.#over = true;
    this.#handlers.onReset(reason);
  }

  #begin(): void {
    const program = this.#over ? undefined : this.#start();
    if (program !== undefined) this.#handlers = listen(program, this.#stream, 0);
  }
}

/** The stream hears the program from this byte on, until it is cut. */
function listen(program: Program, stream: LinkStream, offset: number): StreamHandlers {
  program.listener = stream;
  stream.sendHead(answerHead, false);
  const rest = program.printed.subarray(offset);
  if (rest.length > 0) stream.send(rest);
  if (program.isOver) stream.end();
  return {
    onData: (chunk) => stream.consumed(chunk.length),
    onEnd: () => undefined,
    onReset: () => {
      if (program.listener === stream) program.listener = undefined;
    },
  };
}
