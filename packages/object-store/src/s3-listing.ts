// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isObjectKey, type StoredBytes } from "@space/model";

/** One page of a listing. */
export interface ListingPage {
  readonly objects: readonly StoredBytes[];
  /** Where the next page begins; undefined after the last. */
  readonly next: string | undefined;
}

const contentsForm = /<Contents>(.*?)<\/Contents>/gs;

/**
 * Reads the answer to ListObjectsV2. Objects whose keys are not of our form are left out: they are somebody else's.
 * Throws for what is no whole listing: nothing must look like an end that is none.
 */
export function readListing(xml: string): ListingPage {
  const isWhole = xml.includes("<ListBucketResult") && xml.trimEnd().endsWith("</ListBucketResult>");
  const isTruncated = member(xml, "IsTruncated");
  if (!isWhole || (isTruncated !== "true" && isTruncated !== "false")) throw new Error("not a listing");
  const objects = [...xml.matchAll(contentsForm)].flatMap(([, object = ""]) => {
    const key = member(object, "Key") ?? "";
    return isObjectKey(key) ? [{ key, sizeBytes: sizeIn(object), modifiedMs: timeIn(object) }] : [];
  });
  const next = isTruncated === "true" ? member(xml, "NextContinuationToken") : undefined;
  if (isTruncated === "true" && (next === undefined || next === ""))
    throw new Error("a listing without its rest");
  return { objects, next };
}

/** The text of an element, where it has no elements inside. */
export function member(xml: string, name: string): string | undefined {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return found === undefined ? undefined : decoded(found);
}

function sizeIn(object: string): number {
  const text = member(object, "Size") ?? "";
  if (!/^\d{1,15}$/.test(text)) throw new Error("an object without its size");
  return Number(text);
}

function timeIn(object: string): number {
  const atMs = Date.parse(member(object, "LastModified") ?? "");
  if (!Number.isFinite(atMs)) throw new Error("an object without its time");
  return atMs;
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function decoded(text: string): string {
  return text.replaceAll(
    /&(?:(\w+)|#x([0-9a-fA-F]{1,6})|#(\d{1,7}));/g,
    (_, name?: string, hex?: string, decimal?: string) => {
      if (name !== undefined) return entities[name] ?? "";
      return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
    },
  );
}
