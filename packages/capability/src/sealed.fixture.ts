// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// For tests: sealed chains as a control plane writes them, and every way to write them wrongly.

import {
  type Digest,
  type ExecutionCertificate,
  type ExecutionIdentity,
  manifestVersion,
  parseDigest,
  type SnapshotManifest,
  SpaceError,
} from "@space/model";
import { signCertificate } from "./certificate.ts";
import { certificateDigest, manifestDigest } from "./digest.ts";
import { newSigningKey, type SigningKey } from "./keys.ts";
import { countersignManifest, signManifest } from "./manifest.ts";
import { type ReadObject, SealedChains } from "./sealed-chains.ts";
import {
  type SealedChainObject,
  type SealedLink,
  sealedObjectDigest,
  sealedObjectToBytes,
} from "./sealed-segment.ts";
import { bundle, certificate, identity, nowSeconds, sandboxId, tenantKeyId } from "./signed.fixture.ts";

export const root: SigningKey = newSigningKey();
/** Signed the first links and is in the newest bundle no more; signs now. */
export const [first, second]: readonly [SigningKey, SigningKey] = [newSigningKey(), newSigningKey()];
export const bundles: readonly string[] = [bundle(root, 1, [first]), bundle(root, 3, [second])];
export const absent: Digest = parseDigest("f".repeat(64));

interface Certified {
  readonly key: SigningKey;
  readonly certificate: string;
  readonly identity: ExecutionIdentity;
}

/** Objects as a control plane writes them, and what was signed on the way. */
export class Sealing {
  readonly objects = new Map<Digest, Uint8Array>();
  readonly generations: Certified[] = [];
  readonly sandbox: ExecutionIdentity["sandboxId"];
  #signer: SigningKey;
  #manifest: Digest | null = null;
  end: Digest | null = null;
  links: SealedLink[] = [];
  reads = 0;

  constructor(sandbox = sandboxId, signer = first) {
    this.sandbox = sandbox;
    this.#signer = signer;
  }

  signedBy(signer: SigningKey): this {
    this.#signer = signer;
    return this;
  }

  /** The next execution, restored from the newest snapshot. */
  certify(generation: number, change: Partial<ExecutionCertificate> = {}): this {
    const key = newSigningKey();
    const of = identity(generation, { sandbox: this.sandbox });
    const last = this.generations.at(-1);
    const signed = signCertificate(
      this.#signer,
      certificate({
        key,
        identity: of,
        previous: last === undefined ? null : certificateDigest(last.certificate),
        restoredFrom: this.#manifest,
        ...change,
      }),
    );
    this.generations.push({ key, certificate: signed, identity: change.identity ?? of });
    this.links.push({ certificate: signed });
    return this;
  }

  /** An object with everything since the last. */
  seal(change: Partial<SealedChainObject> = {}): Digest {
    const object = { sandboxId: this.sandbox, previous: this.end, bundles, links: this.links, ...change };
    this.links = [];
    this.end = this.put(sealedObjectToBytes(object));
    return this.end;
  }

  put(bytes: Uint8Array): Digest {
    const digest = sealedObjectDigest(bytes);
    this.objects.set(digest, bytes);
    return digest;
  }

  /** A snapshot of the newest execution, with the chain so far sealed in it. */
  snapshot(change: Partial<SnapshotManifest> = {}, by = this.generations.at(-1)?.key): string {
    const newest = this.generations.at(-1);
    if (newest === undefined) throw new TypeError("it runs");
    const signed = signManifest(by ?? newest.key, {
      version: manifestVersion,
      identity: newest.identity,
      certificate: certificateDigest(newest.certificate),
      previousManifest: this.#manifest,
      chain: this.end ?? absent,
      keyId: tenantKeyId,
      substrate: "namespace",
      memory: "none",
      filesystem: [],
      createdAtSeconds: nowSeconds,
      ...change,
    });
    return signed;
  }

  commit(signed: string): this {
    this.links.push({ manifest: countersignManifest(this.#signer, signed) });
    this.#manifest = manifestDigest(signed);
    return this;
  }

  readonly read: ReadObject = async (digest: Digest): Promise<Uint8Array> => {
    this.reads += 1;
    const bytes = this.objects.get(digest);
    if (bytes === undefined) throw new SpaceError("snapshot/missing", { digest });
    return bytes;
  };

  /** As who has never seen it. */
  open(newest = this.end ?? absent): ReturnType<SealedChains["open"]> {
    return new SealedChains({ root: root.publicKey }).open(newest, this.read);
  }
}

/** Paused, resumed by another key's word, died without a snapshot, resumed from the same one, paused again. */
export function whole(): Sealing {
  const sealing = new Sealing().certify(1);
  sealing.seal();
  sealing.commit(sealing.snapshot()).signedBy(second).certify(2).certify(5);
  sealing.seal();
  return sealing;
}
