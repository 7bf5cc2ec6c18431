// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { setTimeout as pause } from "node:timers/promises";
import { Caller, type SandboxAddress } from "./caller.ts";

export interface SteadyLoadOptions {
  /** The gateways: callers are spread over them. */
  readonly urls: readonly string[];
  /** A caller's rest between two requests. */
  readonly paceMs: number;
  /** One request, and what is made of its answer. */
  readonly ask: (caller: Caller, sandbox: SandboxAddress) => Promise<void>;
}

/** Callers that ask one sandbox after the other until they are told to stop. */
export class SteadyLoad {
  readonly #options: SteadyLoadOptions;
  readonly #callers: Caller[] = [];
  readonly #running: Promise<void>[] = [];
  #goesOn = true;

  constructor(options: SteadyLoadOptions) {
    this.#options = options;
  }

  /** Adds callers of these sandboxes. */
  add(callers: number, cast: readonly SandboxAddress[]): void {
    const { urls } = this.#options;
    for (let at = 0; at < callers; at += 1) {
      const caller = new Caller(urls[at % urls.length] ?? "");
      this.#callers.push(caller);
      this.#running.push(this.#call(caller, cast, Math.floor(at / urls.length)));
    }
  }

  /** Resolves when the last answer has come. Rejects with what `ask` threw. */
  async end(): Promise<void> {
    this.#goesOn = false;
    try {
      await Promise.all(this.#running);
    } finally {
      for (const caller of this.#callers) caller.close();
    }
  }

  async #call(caller: Caller, cast: readonly SandboxAddress[], first: number): Promise<void> {
    for (let turn = first; this.#goesOn; turn += 1) {
      const sandbox = cast[turn % cast.length];
      if (sandbox !== undefined) await this.#options.ask(caller, sandbox);
      await pause(this.#options.paceMs);
    }
  }
}
