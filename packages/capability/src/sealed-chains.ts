// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { type Digest, isSpaceError, SpaceError } from "@space/model";
import { chainLinksLimit } from "./chain-links.ts";
import type { KeyHolder } from "./jws.ts";
import { KeyRing } from "./key-ring.ts";
import { RecentMap } from "./recent-map.ts";
import { chainRefused, followSealed, type SealedEnd } from "./sealed-links.ts";
import {
  parseSealedObject,
  type SealedChainObject,
  type SealedLink,
  sealedObjectDigest,
} from "./sealed-segment.ts";

/** Where the objects are. Throws `snapshot/missing`, `snapshot/refused`, `chunk/…` or `store/failed`. */
export type ReadObject = (digest: Digest) => Promise<Uint8Array>;

const rememberedBundles = 64;

export interface SealedChainsOptions {
  /** The pinned root that signs bundles. */
  readonly root: KeyObject;
  /** Ends of chains that are remembered. */
  readonly remembered?: number;
  /** Bytes of one chain's objects that are held in memory at once; what is beyond is read a second time. */
  readonly heldBytes?: number;
  /** Told of each link that has just been verified, the oldest first, with where the chain ends then. */
  readonly onLink?: (link: SealedLink, end: SealedEnd) => void;
}

interface Step {
  readonly digest: Digest;
  /** undefined: to be read again. */
  readonly object: SealedChainObject | undefined;
}

/**
 * verifies sealed chains to the pinned root. What an object proves never changes, and its digest names all that is
 * before it; so the end of a chain that was verified once is remembered, and a longer one is verified from there on. No
 * verdict is: whether a chain is the right one, is asked each time. May be used concurrently.
 */
export class SealedChains {
  readonly #root: KeyObject;
  readonly #heldBytes: number;
  readonly #onLink: SealedChainsOptions["onLink"];
  readonly #ends: RecentMap<SealedEnd>;
  readonly #rings = new RecentMap<KeyRing>(rememberedBundles);

  constructor({ root, remembered = 4096, heldBytes = 32 * 1024 * 1024, onLink }: SealedChainsOptions) {
    this.#root = root;
    this.#heldBytes = heldBytes;
    this.#onLink = onLink;
    this.#ends = new RecentMap(remembered);
  }

  /**
   * Where the chain ends that ends with this object, which is always read. Reads are one after the other. Throws
   * `snapshot/chain-refused`, or `store/failed`.
   */
  async open(newest: Digest, read: ReadObject): Promise<SealedEnd> {
    const { path, end: known } = await this.#path(newest, read);
    let end = known;
    for (const [at, { digest, object }] of path.toReversed().entries()) {
      const name = `object ${at + 1} of ${path.length}`;
      end = this.#follow(end, object ?? (await readObject(digest, read)).object, name);
    }
    if (end === undefined) throw new TypeError("an object has links");
    this.#ends.set(newest, end);
    return end;
  }

  /** The objects, the newest first, back to the beginning or to one that was verified before, which is not among them. */
  async #path(
    newest: Digest,
    read: ReadObject,
  ): Promise<{ readonly path: readonly Step[]; readonly end: SealedEnd | undefined }> {
    const path: Step[] = [];
    let held = 0;
    for (let digest: Digest | null = newest; digest !== null; ) {
      const remembered = this.#ends.get(digest);
      if (remembered !== undefined && digest !== newest) return { path, end: remembered };
      const { object, sizeBytes } = await readObject(digest, read);
      if (remembered !== undefined) return { path: [], end: remembered };
      held += sizeBytes;
      path.push({ digest, object: held > this.#heldBytes ? undefined : object });
      if (path.length > chainLinksLimit) throw chainRefused("too long", "object");
      digest = object.previous;
    }
    return { path, end: undefined };
  }

  #follow(
    before: SealedEnd | undefined,
    { sandboxId, bundles, links }: SealedChainObject,
    name: string,
  ): SealedEnd | undefined {
    const keys = this.#keysOf(bundles, name);
    let end = before;
    for (const [at, link] of links.entries()) {
      end = followSealed(end, link, { keys, sandboxId, link: `${name}, link ${at + 1} of ${links.length}` });
      this.#onLink?.(link, end);
    }
    return end;
  }

  /** every key of these bundles, each of which the root has signed. */
  #keysOf(bundles: readonly string[], name: string): KeyHolder {
    const rings = bundles.map((token) => this.#ring(token, name));
    return {
      find: (kid) => {
        for (const ring of rings) {
          const key = ring.find(kid);
          if (key !== undefined) return key;
        }
        return undefined;
      },
    };
  }

  #ring(token: string, name: string): KeyRing {
    const known = this.#rings.get(token);
    if (known !== undefined) return known;
    try {
      const ring = KeyRing.fromBundle(token, this.#root);
      this.#rings.set(token, ring);
      return ring;
    } catch (cause) {
      if (!isSpaceError(cause, "bundle/refused")) throw cause;
      const { problem } = cause.details;
      throw chainRefused(
        problem === "key" ? "unknown key" : problem === "signature" ? "signature" : "damaged",
        `${name}, bundle`,
        cause,
      );
    }
  }
}

async function readObject(
  digest: Digest,
  read: ReadObject,
): Promise<{ readonly object: SealedChainObject; readonly sizeBytes: number }> {
  const link = `object ${digest.slice(0, 12)}`;
  try {
    const bytes = await read(digest);
    if (sealedObjectDigest(bytes) !== digest) throw chainRefused("damaged", link);
    return { object: parseSealedObject(bytes), sizeBytes: bytes.length };
  } catch (cause) {
    if (isSpaceError(cause, "snapshot/missing"))
      throw new SpaceError("snapshot/chain-refused", { problem: "missing", link }, { cause });
    if (isDamage(cause))
      throw new SpaceError("snapshot/chain-refused", { problem: "damaged", link }, { cause });
    throw cause;
  }
}

/** What is there is not the object, in whatever way. */
function isDamage(error: unknown): boolean {
  if (!isSpaceError(error)) return false;
  return (
    error.code === "snapshot/refused" || error.code === "input/invalid" || error.code.startsWith("chunk/")
  );
}
