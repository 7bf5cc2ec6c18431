// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type KeyWrapping, Secret, SpaceError } from "@space/model";

/** A provider without cryptography: the version of its key, the context, and the bits turned over. */
export class MemoryKeyWrapping implements KeyWrapping {
  newest = 1;
  /** Versions below are not held any more. */
  oldest = 1;

  async wrap(secret: Secret<Uint8Array>, context: string): Promise<Uint8Array> {
    const words = Buffer.from(`${this.newest}|${context}|`);
    return Buffer.concat([words, secret.reveal().map((byte) => byte ^ 0xff)]);
  }

  async unwrap(wrapped: Uint8Array, context: string): Promise<Secret<Uint8Array>> {
    const words = Buffer.from(`${this.#version(wrapped)}|${context}|`);
    if (!Buffer.from(wrapped).subarray(0, words.length).equals(words))
      throw new SpaceError("key-wrapping/refused", { problem: "context" });
    return new Secret(Uint8Array.from(wrapped.subarray(words.length), (byte) => byte ^ 0xff));
  }

  async isNewest(wrapped: Uint8Array): Promise<boolean> {
    return this.#version(wrapped) === this.newest;
  }

  #version(wrapped: Uint8Array): number {
    const version = Number.parseInt(Buffer.from(wrapped.subarray(0, 8)).toString("latin1"), 10);
    if (version >= this.oldest) return version;
    throw new SpaceError("key-wrapping/unknown", { wrappingKey: String(version) });
  }
}
