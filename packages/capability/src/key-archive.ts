// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { SpaceError } from "@space/model";
import type { KeyFinder } from "./jws.ts";
import { KeyRing } from "./key-ring.ts";

/** Bundles of one archive. */
export const archiveBundlesLimit = 100_000;

/**
 * every key that the root has ever vouched for, from the bundles themselves. It says which keys *were* the
 * control plane's: enough for what a later signature or the control plane's own store vouches for, and never for a
 * capability.
 */
export class KeyArchive {
  readonly #keys: ReadonlyMap<string, KeyObject>;
  /** The bundle that held each key first. */
  readonly #bundles: ReadonlyMap<string, string>;
  /** The newest bundle's keys: those that count now. */
  readonly newest: KeyRing;

  private constructor(
    keys: ReadonlyMap<string, KeyObject>,
    bundles: ReadonlyMap<string, string>,
    newest: KeyRing,
  ) {
    this.#keys = keys;
    this.#bundles = bundles;
    this.newest = newest;
  }

  /** In any order, each version once; the oldest first, where {@link bundleOf} is asked. Throws `bundle/refused`. */
  static fromBundles(bundles: readonly string[], root: KeyObject): KeyArchive {
    if (bundles.length > archiveBundlesLimit) throw refused("too many bundles");
    const keys = new Map<string, KeyObject>();
    const holders = new Map<string, string>();
    const versions = new Set<number>();
    let newest = KeyRing.none;
    for (const token of bundles) {
      const ring = KeyRing.fromBundle(token, root);
      if (versions.has(ring.version)) throw refused("repeated version");
      versions.add(ring.version);
      for (const [kid, key] of ring.entries()) {
        keys.set(kid, key);
        if (!holders.has(kid)) holders.set(kid, token);
      }
      if (ring.version > newest.version) newest = ring;
    }
    return new KeyArchive(keys, holders, newest);
  }

  /** Bound, so that it can be passed on as a function. */
  readonly find: KeyFinder = (kid) => this.#keys.get(kid);

  /** The first bundle that held this key: for one key it is always the same. */
  bundleOf(kid: string): string | undefined {
    return this.#bundles.get(kid);
  }
}

function refused(problem: string): SpaceError {
  return new SpaceError("bundle/refused", { problem });
}
