// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { openSync, writeSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { AuditSink } from "@space/model";
import pino from "pino";

/** Bytes that wait for the disk at most. What comes on top is dropped, and counted in the file once it can be written. */
const waitingBytesLimit = 4 * 1024 * 1024;

/**
 * Appends audit events to a file of mode 0600, one JSON object a line, in the background. A disk that refuses them costs
 * events, never the process: the next line that is written after that says how many are missing.
 */
export function auditFile(path: string): AuditSink & { close(): Promise<void> } {
  const lines = new LineFile(path);
  const log = pino({ base: null, formatters: { level: (level) => ({ level }) } }, lines);
  lines.onRecovered = (dropped) => log.warn({ dropped, event: "audit/dropped" });
  return {
    record: (name, fields) => log.info({ ...fields, event: name }),
    close: () => lines.close(),
  };
}

/** Writes lines in order, as many at once as there are. */
class LineFile {
  onRecovered: (dropped: number) => void = () => undefined;
  readonly #file: Promise<FileHandle>;
  readonly #path: string;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  /** A write that failed may have written half a line. */
  #torn = false;
  #writing: Promise<void> | undefined;
  readonly #onExit = (): void => this.#writeAtExit();

  constructor(path: string) {
    this.#path = path;
    this.#file = open(path, "a", 0o600);
    this.#file.catch(() => undefined); // each write meets it again
    process.once("exit", this.#onExit);
  }

  write(line: string): void {
    if (this.#waitingBytes + line.length > waitingBytesLimit) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  async close(): Promise<void> {
    process.off("exit", this.#onExit);
    await this.#writing;
    await (await this.#file.catch(() => undefined))?.close();
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#take();
      try {
        await (await this.#file).appendFile((this.#torn ? "\n" : "") + lines.join(""));
        this.#torn = false;
      } catch {
        this.#torn = true;
        this.#dropped += lines.length;
        continue; // the disk's state is the operator's to see; the next event tries again
      }
      const dropped = this.#dropped;
      this.#dropped = 0;
      if (dropped > 0) this.onRecovered(dropped);
    }
  }

  #take(): readonly string[] {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return lines;
  }

  /** Once, by the way that is left; a disk that is full must not hold up the end. */
  #writeAtExit(): void {
    const text = this.#take().join("");
    if (text === "") return;
    try {
      writeSync(openSync(this.#path, "a", 0o600), text);
    } catch {
      // nobody is left to be told
    }
  }
}
