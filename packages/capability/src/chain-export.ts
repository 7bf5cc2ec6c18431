// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { KeyObject } from "node:crypto";
import { type Digest, isSpaceError, members, parseSandboxId, type SandboxId, SpaceError } from "@space/model";
import { type VerifiedChain, verifyChain } from "./chain.ts";
import { type ChainHead, verifyChainHead } from "./chain-head.ts";
import { chainLinksLimit, nameOf } from "./chain-links.ts";
import { manifestDigest } from "./digest.ts";
import { invalid, parseList } from "./fields.ts";
import { claimedKeyId } from "./jws.ts";
import { KeyArchive } from "./key-archive.ts";
import { KeyRing } from "./key-ring.ts";
import { verifyCountersigned } from "./manifest.ts";

/** Longest text of an exported chain, in characters. */
export const chainExportLimit: number = 256 * 1024 * 1024;
const format = "space-identity-chain/1";

/** a sandbox's whole identity chain, with all that is needed to verify it to the root. */
export interface ChainExport {
  readonly sandboxId: SandboxId;
  /** The signed {@link ChainHead}. */
  readonly head: string;
  /** Verification bundles, among them the newest and one for each key that signed a link. */
  readonly bundles: readonly string[];
  /** Newest first. */
  readonly certificates: readonly string[];
  /** Countersigned, newest first. */
  readonly manifests: readonly string[];
}

export function chainExportToText(chain: ChainExport): string {
  const { sandboxId, head, bundles, certificates, manifests } = chain;
  return `${JSON.stringify({ format, sandboxId, head, bundles, certificates, manifests }, undefined, 1)}\n`;
}

/** Reads the text strictly; nothing is verified. Throws `chain/refused` or `input/too-large`. */
export function parseChainExport(text: string): ChainExport {
  if (text.length > chainExportLimit)
    throw new SpaceError("input/too-large", { what: "chain", limitBytes: chainExportLimit });
  return named("export", () => {
    const names = ["format", "sandboxId", "head", "bundles", "certificates", "manifests"];
    const chain = members(parseJson(text), "export", names);
    if (chain["format"] !== format) throw invalid("format", "is not known");
    return Object.freeze({
      sandboxId: parseSandboxId(chain["sandboxId"]),
      head: parseToken(chain["head"]),
      bundles: parseTokens(chain["bundles"], "bundles"),
      certificates: parseTokens(chain["certificates"], "certificates"),
      manifests: parseTokens(chain["manifests"], "manifests"),
    });
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SpaceError("input/invalid", { field: "export", problem: "is not JSON" }, { cause });
  }
}

function parseTokens(value: unknown, field: string): readonly string[] {
  return Object.freeze(parseList(value, field, chainLinksLimit).map(parseToken));
}

function parseToken(value: unknown): string {
  if (typeof value === "string") return value;
  throw invalid("token", "must be a text");
}

/** Who signed one link, and whether that key still counted when the chain was exported. */
export interface LinkSigner {
  readonly kid: string;
  readonly isCurrent: boolean;
}

/** a chain that holds from its head down to generation 1, as of the moment at which the head was signed. */
export interface VerifiedExport extends VerifiedChain {
  readonly sandboxId: SandboxId;
  readonly head: ChainHead;
  readonly headSigner: LinkSigner;
  /** In the order of `links`. */
  readonly certificateSigners: readonly LinkSigner[];
  /** Newest first. */
  readonly manifestOrder: readonly { readonly digest: Digest; readonly signer: LinkSigner }[];
  /** Version of the newest bundle in the export: what was revoked later, it cannot know. */
  readonly bundleVersion: number;
}

/**
 * verifies an export with nothing but the root's public key. Each bundle is the root's; the head is signed by
 * a key of the newest bundle; every certificate and manifest is signed by a key that the root vouched for, hangs on the
 * head by digests, in order and without a gap. Throws `chain/refused` naming the link.
 */
export function verifyChainExport(chain: ChainExport, root: KeyObject): VerifiedExport {
  const { sandboxId, certificates, manifests } = chain;
  const archive = openArchive(chain.bundles, root);
  const head = verifyChainHead(chain.head, archive.newest);
  if (head.sandboxId !== sandboxId) throw refused("head", "other sandbox");
  const verified = verifyChain(certificates, manifests, archive);
  checkHead(head, verified, certificates.length);
  const order = orderManifests(manifests, archive);
  checkOrder(head, order, verified);
  const signerOf = (token: string): LinkSigner => {
    const kid = claimedKeyId(token) ?? "";
    return { kid, isCurrent: archive.newest.find(kid) !== undefined };
  };
  return {
    ...verified,
    sandboxId,
    head,
    headSigner: signerOf(chain.head),
    certificateSigners: certificates.map(signerOf),
    manifestOrder: order.map((digest, at) => ({ digest, signer: signerOf(manifests[at] ?? "") })),
    bundleVersion: archive.newest.version,
  };
}

function openArchive(bundles: readonly string[], root: KeyObject): KeyArchive {
  bundles.forEach((token, at) => {
    named(nameOf("bundle", at, bundles.length), () => KeyRing.fromBundle(token, root));
  });
  return named("bundles", () => KeyArchive.fromBundles(bundles, root));
}

/** the chain ends exactly where the head says: nothing newer was left out. */
function checkHead(head: ChainHead, { links }: VerifiedChain, count: number): void {
  const [newest] = links;
  const link = nameOf("certificate", 0, count);
  if (newest?.certificate.identity.sandboxId !== head.sandboxId) throw refused(link, "other sandbox");
  if (newest.digest !== head.certificate) throw refused(link, "is not the head");
}

function orderManifests(manifests: readonly string[], archive: KeyArchive): readonly Digest[] {
  return manifests.map((token) => manifestDigest(verifyCountersigned(token, archive)));
}

/** the manifests are one line from the head's down, none left out, none beside it. */
function checkOrder(head: ChainHead, order: readonly Digest[], { manifests }: VerifiedChain): void {
  const name = (at: number): string => nameOf("manifest", at, order.length);
  if (order[0] === undefined) {
    if (head.manifest !== null) throw refused("head", "its manifest is missing");
    return;
  }
  if (order[0] !== head.manifest) throw refused(name(0), "is not the head");
  order.forEach((digest, at) => {
    const previous = manifests.get(digest)?.previousManifest ?? null;
    const next = order[at + 1];
    if (next !== undefined && previous !== next) throw refused(name(at), "previous is another");
    if (next === undefined && previous !== null) throw refused(name(at), "previous is missing");
  });
}

/** Runs `check` and says which link it was that was refused. */
function named<T>(link: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (isSpaceError(cause, "bundle/refused"))
      throw new SpaceError("chain/refused", { link, problem: cause.details.problem }, { cause });
    if (isSpaceError(cause, "input/invalid")) {
      const problem = `${cause.details.field} ${cause.details.problem}`;
      throw new SpaceError("chain/refused", { link, problem }, { cause });
    }
    throw cause;
  }
}

function refused(link: string, problem: string): SpaceError {
  return new SpaceError("chain/refused", { link, problem });
}
