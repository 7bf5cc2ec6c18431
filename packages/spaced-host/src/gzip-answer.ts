// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { constants, createGzip, type Gzip } from "node:zlib";
import type { Exchange } from "./exchange.ts";

/** Compresses an answer's bytes on their way, at the pace of the slower side. */
export class GzipAnswer {
  readonly #gzip: Gzip;
  readonly #exchange: Exchange;

  /** `onDrain` is called when `write` may go on after it returned false. */
  constructor(exchange: Exchange, onDrain: () => void) {
    this.#exchange = exchange;
    this.#gzip = createGzip({ level: constants.Z_BEST_SPEED });
    this.#gzip.on("drain", onDrain);
    this.#gzip.on("data", (chunk: Buffer) => {
      if (!exchange.write(chunk)) this.#gzip.pause();
    });
    exchange.listenForDrain(() => this.#gzip.resume());
    exchange.onOver(() => this.#gzip.destroy());
  }

  write(chunk: Buffer): boolean {
    return this.#gzip.destroyed || this.#gzip.write(chunk);
  }

  /** Resolves when the last byte has been given to the exchange, or the exchange is over. */
  end(): Promise<void> {
    return new Promise((resolve) => {
      this.#gzip.once("close", resolve);
      this.#gzip.once("end", () => this.#exchange.end());
      if (this.#gzip.destroyed) resolve();
      else this.#gzip.end();
    });
  }
}
