// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { Sandbox } from "e2b";
import { systemClock } from "../host/system-clock.ts";

const count = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done";

/** One stream of E2B's own client, of a program that counts. */
export class CountingStream {
  #text = "";
  #lastMs = systemClock.monotonicMs();
  #longestSilenceMs = 0;
  #ended: string | undefined;

  /** Opens it; resolves when the client has its head. */
  static async open(
    sandboxId: string,
    client: Parameters<typeof Sandbox.connect>[1],
  ): Promise<CountingStream> {
    const stream = new CountingStream();
    const sandbox = await Sandbox.connect(sandboxId, client);
    const handle = await sandbox.commands.run(count, {
      background: true,
      timeoutMs: 0,
      onStdout: (text) => stream.#take(text),
    });
    handle.wait().then(
      () => stream.#end("its program ended"),
      (error: unknown) => stream.#end(String(error)),
    );
    return stream;
  }

  /** Why it ended, if it has. */
  get ended(): string | undefined {
    return this.#ended;
  }

  get numbers(): number {
    return this.#text.split("\n").length - 1;
  }

  /** Whether every number came, once and in order. */
  get isWhole(): boolean {
    const complete = this.#text.slice(0, this.#text.lastIndexOf("\n") + 1);
    return complete === Array.from({ length: this.numbers }, (_, at) => `${at + 1}\n`).join("");
  }

  /** The longest time between two pieces, up to now. */
  get longestSilenceMs(): number {
    return Math.max(this.#longestSilenceMs, systemClock.monotonicMs() - this.#lastMs);
  }

  #take(text: string): void {
    this.#longestSilenceMs = this.longestSilenceMs;
    this.#lastMs = systemClock.monotonicMs();
    this.#text += text;
  }

  #end(how: string): void {
    this.#ended = how;
  }
}
