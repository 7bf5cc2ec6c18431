// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import { type Digest, members, parseDigest, parseSandboxId, type SandboxId, SpaceError } from "@space/model";
import { invalid, parseList } from "./fields.ts";
import { readStrictJson } from "./strict-json.ts";

/** Longest object of a sealed chain. */
export const sealedSegmentLimitBytes: number = 8 * 1024 * 1024;
/** Most links, and most bundles, of one object. */
const segmentItemsLimit = 4096;
const format = "space-sealed-chain/1";

/** One signed link of a sealed chain. */
export type SealedLink =
  | { readonly certificate: string }
  /** As the control plane countersigned it. */
  | { readonly manifest: string };

/**
 * one object of the chain that is sealed in snapshots. Its name is the SHA-256 of its bytes; each names the one
 * before, so that a snapshot that names the last one names them all.
 */
export interface SealedChainObject {
  readonly sandboxId: SandboxId;
  readonly previous: Digest | null;
  /** bundles of the root that hold the keys of these links. */
  readonly bundles: readonly string[];
  /** The oldest first; a manifest stands behind the certificate of the execution that it is of. The last is a certificate. */
  readonly links: readonly SealedLink[];
}

/** The object's bytes. Throws `input/too-large`. */
export function sealedObjectToBytes({ sandboxId, previous, bundles, links }: SealedChainObject): Buffer {
  const bytes = Buffer.from(JSON.stringify({ format, sandboxId, previous, bundles, links }));
  if (bytes.length <= sealedSegmentLimitBytes) return bytes;
  throw new SpaceError("input/too-large", { what: "sealed chain", limitBytes: sealedSegmentLimitBytes });
}

/** The object's name. */
export function sealedObjectDigest(bytes: Uint8Array): Digest {
  return parseDigest(hash("sha256", bytes, "hex"));
}

/** Reads an object strictly; no signature is looked at. Throws `input/invalid`. */
export function parseSealedObject(bytes: Uint8Array): SealedChainObject {
  if (bytes.length > sealedSegmentLimitBytes) throw invalid("sealed chain", "is too long");
  return readStrictJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), readObject);
}

function readObject(value: unknown): SealedChainObject {
  const object = members(value, "sealed chain", ["format", "sandboxId", "previous", "bundles", "links"]);
  if (object["format"] !== format) throw invalid("format", "is not known");
  const links = parseList(object["links"], "links", segmentItemsLimit).map(readLink);
  if (!("certificate" in (links.at(-1) ?? {}))) throw invalid("links", "must end with a certificate");
  return Object.freeze({
    sandboxId: parseSandboxId(object["sandboxId"]),
    previous: object["previous"] === null ? null : parseDigest(object["previous"]),
    bundles: Object.freeze(parseList(object["bundles"], "bundles", segmentItemsLimit).map(readToken)),
    links: Object.freeze(links),
  });
}

function readLink(value: unknown): SealedLink {
  const { certificate, manifest } = members(value, "link", [], ["certificate", "manifest"]);
  if (certificate !== undefined && manifest === undefined)
    return Object.freeze({ certificate: readToken(certificate) });
  if (certificate !== undefined) throw invalid("link", "must be one statement");
  return Object.freeze({ manifest: readToken(manifest) });
}

function readToken(value: unknown): string {
  if (typeof value === "string") return value;
  throw invalid("token", "must be a text");
}
