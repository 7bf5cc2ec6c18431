// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Digest, SnapshotManifest } from "@space/model";
import { type ChainLink, verifyLinks } from "./chain-links.ts";
import { verifyManifests } from "./chain-manifests.ts";
import type { KeyHolder } from "./jws.ts";

/** an identity chain of which every link holds. */
export interface VerifiedChain {
  /** Newest first: the head is the first, the last is of generation 1. */
  readonly links: readonly ChainLink[];
  readonly manifests: ReadonlyMap<Digest, SnapshotManifest>;
}

/**
 * verifies an identity chain. `certificates` newest first, each naming the next as its previous, down to
 * generation 1; `manifests` as the control plane countersigned them, in any order. It shows that the chain is whole and
 * signed; that its first certificate is the newest there is, only a `ChainHead` can show.
 * Throws `chain/refused` naming the link; its `problem` is a `CertificateBreak`, a `ManifestBreak`, or form, key, signature.
 */
export function verifyChain(
  certificates: readonly string[],
  manifests: readonly string[],
  keys: KeyHolder,
): VerifiedChain {
  const links = verifyLinks(certificates, keys);
  return { links, manifests: verifyManifests(manifests, links, keys) };
}
