// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import { type Digest, type ObjectStore, SpaceError } from "@space/model";

/** An object store in memory. `beforePut` may throw what a failing disk would. */
export class MemoryObjectStore implements ObjectStore {
  readonly objects = new Map<Digest, Uint8Array>();
  beforePut: () => void = () => undefined;

  async put(digest: Digest, bytes: Uint8Array): Promise<void> {
    this.beforePut();
    if (hash("sha256", bytes, "hex") !== digest)
      throw new SpaceError("snapshot/refused", { problem: "bytes are not the digest's" });
    this.objects.set(digest, Buffer.from(bytes)); // a copy
  }

  async get(digest: Digest): Promise<Uint8Array> {
    const bytes = this.objects.get(digest);
    if (bytes === undefined) throw new SpaceError("snapshot/missing", { digest });
    if (hash("sha256", bytes, "hex") !== digest)
      throw new SpaceError("snapshot/refused", { problem: "stored bytes are damaged" });
    return bytes;
  }

  async has(digest: Digest): Promise<boolean> {
    return this.objects.has(digest);
  }

  async remove(digest: Digest): Promise<void> {
    this.objects.delete(digest);
  }
}
