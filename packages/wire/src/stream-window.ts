// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** How much one stream may send before the receiver has consumed any of it. */
export const streamWindowBytes: number = 512 * 1024;
const creditStepBytes = streamWindowBytes / 4;
/** A stream whose user goes on sending with this much still waiting is broken off. */
export const streamBacklogLimitBytes: number = 64 * 1024 * 1024;

/** The sending half of a stream's flow control: what exceeds the receiver's credit waits here, in order. */
export class SendWindow {
  readonly #emit: (bytes: Buffer) => void;
  #credit = streamWindowBytes;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;

  /** `emit` sends bytes that the credit covers. */
  constructor(emit: (bytes: Buffer) => void) {
    this.#emit = emit;
  }

  /** Whether everything that was pushed has gone. */
  get idle(): boolean {
    return this.#waitingBytes === 0;
  }

  /** Whether more would go at once. */
  get open(): boolean {
    return this.idle && this.#credit > 0;
  }

  /** Sends what the credit covers and keeps the rest. False: too much waits already, and nothing of this was taken. */
  push(bytes: Buffer): boolean {
    if (this.#waitingBytes >= streamBacklogLimitBytes) return false;
    if (bytes.length === 0) return true;
    if (this.idle && bytes.length <= this.#credit) {
      this.#credit -= bytes.length;
      this.#emit(bytes);
      return true;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#advance();
    return true;
  }

  /** Takes the payload of a credit frame. Throws `link/protocol` when it grants what was never sent. */
  credited(payload: Buffer): void {
    if (payload.length !== 4) throw new SpaceError("link/protocol", { problem: "bad credit" });
    this.#credit += payload.readUInt32BE();
    if (this.#credit > streamWindowBytes) {
      throw new SpaceError("link/protocol", { problem: "too much credit" });
    }
    this.#advance();
  }

  /** Lets go of what waits. */
  clear(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  #advance(): void {
    let sent = 0;
    for (const bytes of this.#waiting) {
      if (this.#credit < bytes.length) break;
      this.#take(bytes);
      sent += 1;
    }
    this.#waiting.splice(0, sent);
    const next = this.#waiting[0];
    if (next === undefined || this.#credit === 0) return;
    this.#waiting[0] = next.subarray(this.#credit);
    this.#take(next.subarray(0, this.#credit));
  }

  #take(bytes: Buffer): void {
    this.#credit -= bytes.length;
    this.#waitingBytes -= bytes.length;
    this.#emit(bytes);
  }
}

/** The receiving half: what has come and was not consumed yet, and the credit owed for what was. */
export class ReceiveWindow {
  #unconsumed = 0;
  #owed = 0;

  /** Throws `link/protocol` when the sender had no credit for so much. */
  received(bytes: number): void {
    this.#unconsumed += bytes;
    if (this.#unconsumed + this.#owed > streamWindowBytes) {
      throw new SpaceError("link/protocol", { problem: "window exceeded" });
    }
  }

  /** The payload of the credit frame to send now, if any. Giving back more than has come is a bug of the user: `TypeError`. */
  consumed(bytes: number): Buffer | undefined {
    if (bytes > this.#unconsumed) throw new TypeError("consumed more than was received");
    this.#unconsumed -= bytes;
    this.#owed += bytes;
    if (this.#owed < creditStepBytes) return undefined;
    const credit = Buffer.allocUnsafe(4);
    credit.writeUInt32BE(this.#owed);
    this.#owed = 0;
    return credit;
  }
}
