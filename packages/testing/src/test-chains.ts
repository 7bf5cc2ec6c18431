// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  certificateDigest,
  countersignManifest,
  manifestDigest,
  type SealedLink,
  sealedObjectDigest,
  sealedObjectToBytes,
} from "@space/capability";
import type { Digest, ObjectStore, SandboxId, SnapshotLinks } from "@space/model";
import type { TestAuthority } from "./test-authority.ts";

interface TestChain {
  certificate: Digest;
  manifest: Digest | null;
  /** What the next snapshot of the newest execution follows, and when its object is in the store. */
  stored: Promise<void>;
  follows: SnapshotLinks | undefined;
  /** Since the newest object. */
  links: SealedLink[];
}

const nothing = Promise.resolve();

/** the identity chains of a test that plays the control plane, sealed object by object. */
export class TestChains {
  readonly #authority: TestAuthority;
  readonly #objects: ObjectStore;
  readonly #chains = new Map<SandboxId, TestChain>();

  constructor(authority: TestAuthority, objects: ObjectStore) {
    this.#authority = authority;
    this.#objects = objects;
  }

  /** The newest certificate of the sandbox. */
  head(sandboxId: SandboxId): Digest | undefined {
    return this.#chains.get(sandboxId)?.certificate;
  }

  /** An execution was certified and installed. */
  certified(sandboxId: SandboxId, token: string): void {
    const certificate = certificateDigest(token);
    const chain = this.#chains.get(sandboxId) ?? {
      manifest: null,
      stored: nothing,
      follows: undefined,
      links: [],
    };
    if ("certificate" in chain && chain.certificate === certificate) return;
    this.#chains.set(sandboxId, { ...chain, certificate, links: [...chain.links, { certificate: token }] });
  }

  /** A snapshot was committed. */
  committed(sandboxId: SandboxId, signed: string): void {
    const chain = this.#chains.get(sandboxId);
    const manifest = manifestDigest(signed);
    if (chain === undefined || chain.manifest === manifest) return;
    chain.manifest = manifest;
    chain.links.push({ manifest: countersignManifest(this.#authority.key, signed) });
  }

  /** What the next snapshot comes after, its chain stored. Throws what the store throws. */
  async seal(sandboxId: SandboxId): Promise<SnapshotLinks> {
    const chain = this.#chains.get(sandboxId);
    if (chain === undefined) throw new TypeError("it has never run");
    const { follows: before, manifest, links } = chain;
    if (before !== undefined && !links.some((link) => "certificate" in link)) {
      await chain.stored;
      return before;
    }
    const bytes = this.bytesOf({ sandboxId, links, previous: before?.chain ?? null });
    const follows = { previousManifest: manifest, chain: sealedObjectDigest(bytes) };
    const stored = this.#objects.put(follows.chain, bytes);
    Object.assign(chain, { follows, stored, links: [] });
    await stored;
    return follows;
  }

  /** One object of a chain, under the authority's bundle unless others are given. */
  async store(object: Parameters<TestChains["bytesOf"]>[0]): Promise<Digest> {
    const bytes = this.bytesOf(object);
    const digest = sealedObjectDigest(bytes);
    await this.#objects.put(digest, bytes);
    return digest;
  }

  bytesOf(object: {
    readonly sandboxId: SandboxId;
    readonly links: readonly SealedLink[];
    readonly previous: Digest | null;
    readonly bundles?: readonly string[];
  }): Buffer {
    return sealedObjectToBytes({ bundles: [this.#authority.bundle()], ...object });
  }
}
