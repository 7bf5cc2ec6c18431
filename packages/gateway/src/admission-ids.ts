// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type AdmissionId, parseAdmissionId, type Random } from "@space/model";

const alphabet = Buffer.from("abcdefghijklmnopqrstuvwxyz234567");
const idLetters = 26;
const idsPerDraw = 256;

/** Fresh random admission ids, drawn many at a time because each request needs one. */
export class AdmissionIds {
  readonly #random: Random;
  #letters = "";
  #at = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  next(): AdmissionId {
    if (this.#at >= this.#letters.length) this.#draw();
    const start = this.#at;
    this.#at += idLetters;
    return parseAdmissionId(`adm_${this.#letters.slice(start, this.#at)}`);
  }

  #draw(): void {
    const bytes = Buffer.from(this.#random.bytes(idLetters * idsPerDraw));
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = alphabet[(bytes[at] ?? 0) & 31] ?? 0;
    this.#letters = bytes.toString("latin1");
    this.#at = 0;
  }
}
