// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type HostOperationHead, headerValue, type LinkStream, type StreamHandlers } from "@space/wire";
import type { EventLoop, Incarnation } from "./event-loop.ts";
import type { SimProcess } from "./sim-machine.ts";
import type { SimRandom } from "./sim-random.ts";

/** Told what operations really do in guests. */
export interface GuestWatcher {
  /** An operation has its effect, or reads, in this process now. */
  acted(operation: number, process: SimProcess): void;
  /** A stream is let in to what this process has begun before: R-22. */
  attached(operation: number, process: SimProcess): void;
  /** A stream's bytes leave the guest. */
  streamed(operation: number, process: SimProcess): void;
}

export interface GuestPorts {
  readonly loop: EventLoop;
  readonly owner: Incarnation;
  readonly random: SimRandom;
  readonly watcher: GuestWatcher;
}

/** The word in the headers of a simulated caller's request that names the operation. */
export const operationHeader = "x-operation";

export function operationOf({ headers }: HostOperationHead): number {
  return Number(headerValue(headers, operationHeader));
}

export const ignoring: StreamHandlers = {
  onData: () => undefined,
  onEnd: () => undefined,
  onReset: () => undefined,
};

/** A read or a write in a guest. What a frozen guest was sent waits for it. */
export class GuestOperation implements StreamHandlers {
  readonly #ports: GuestPorts;
  readonly #stream: LinkStream;
  readonly #process: SimProcess;
  readonly #head: HostOperationHead;
  #over = false;

  constructor(ports: GuestPorts, stream: LinkStream, process: SimProcess, head: HostOperationHead) {
    this.#ports = ports;
    this.#stream = stream;
    this.#process = process;
    this.#head = head;
  }

  onData(chunk: Buffer): void {
    this.#stream.consumed(chunk.length);
  }

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
    if (this.#over) return;
    switch (this.#process.fenced && this.#process.state === "running" ? "frozen" : this.#process.state) {
      case "gone":
        this.#over = true;
        return this.#stream.reset("execution-gone");
      case "frozen":
        loop.after(100, owner, () => this.#act());
        return;
      case "running": {
        const number = operationOf(this.#head);
        if (this.#head.method === "POST") this.#process.files += ` ${number}`;
        watcher.acted(number, this.#process);
        const said = Buffer.from(`${this.#process.uid}|${this.#process.files}`);
        const { random } = this.#ports;
        if (random.chance(0.25)) loop.after(random.between(0, 1500), owner, () => this.#answer(said));
        else this.#answer(said);
      }
    }
  }

  /** Some time after its effect: an answer can be lost on its way, or with who brings it. */
  #answer(said: Buffer): void {
    if (this.#over) return;
    this.#stream.sendHead(answerHead, false);
    this.#stream.send(said);
    this.#stream.end();
  }
}

const answerHead = JSON.stringify({ status: 200, headers: ["content-type", "text/plain"] });
