// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { posix } from "node:path";

/** Types that the name alone tells, for browsers that open a file's address. */
const byExtension: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".gif": "image/gif",
  ".htm": "text/html; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".mp4": "video/mp4",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webp": "image/webp",
  ".xml": "text/xml; charset=utf-8",
  ".zip": "application/zip",
};

export function contentType(path: string): string {
  return byExtension[posix.extname(path).toLowerCase()] ?? "application/octet-stream";
}

/** `inline` with the file's name, in the form that keeps every byte of it. */
export function contentDisposition(path: string): string {
  const name = posix.basename(path);
  if (/^[A-Za-z0-9!#$&+.^_`|~-]+$/.test(name)) return `inline; filename=${name}`;
  if (/^[\x20-\x7e]+$/.test(name)) return `inline; filename="${name.replace(/["\\]/g, "\\$&")}"`;
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16)}`,
  );
  return `inline; filename*=utf-8''${encoded}`;
}

/** Which forms of a body the caller takes. */
export interface AcceptedEncodings {
  readonly gzip: boolean;
  readonly identity: boolean;
}

/** Reads `Accept-Encoding` (RFC 9110 section 12.5.3): gzip must be named or `*`; identity is taken unless refused. */
export function acceptedEncodings(header: string | undefined): AcceptedEncodings {
  let gzip: boolean | undefined;
  let identity: boolean | undefined;
  let others: boolean | undefined;
  for (const part of (header ?? "").split(",", 64)) {
    const [name = "", ...parameters] = part
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/);
    const accepted = !parameters.some((parameter) => /^q=0(\.0{0,3})?$/.test(parameter));
    if (name === "gzip" || name === "x-gzip") gzip = accepted;
    else if (name === "identity") identity = accepted;
    else if (name === "*") others = accepted;
  }
  return { gzip: gzip ?? others ?? false, identity: identity ?? others !== false };
}

/** A single byte range, before the file's size is known. */
export type RequestedRange =
  | { readonly kind: "from"; readonly first: number; readonly last: number | undefined }
  | { readonly kind: "suffix"; readonly length: number };

/** Reads `Range`. Undefined for what is not one range of bytes: the whole file is then served, as the RFC allows. */
export function parseRange(header: string | undefined): RequestedRange | undefined {
  const match = /^bytes=\s*([0-9]{0,15})-([0-9]{0,15})\s*$/i.exec(header ?? "");
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") return last === "" ? undefined : { kind: "suffix", length: Number(last) };
  if (last !== "" && Number(last) < Number(first)) return undefined;
  return { kind: "from", first: Number(first), last: last === "" ? undefined : Number(last) };
}

/** The bytes of a file of this size that a range names: `first` to `last`, both included; undefined when there are none. */
export function resolveRange(
  range: RequestedRange,
  sizeBytes: number,
): { readonly first: number; readonly last: number } | undefined {
  const end = sizeBytes - 1;
  switch (range.kind) {
    case "from":
      return range.first > end ? undefined : { first: range.first, last: Math.min(range.last ?? end, end) };
    case "suffix":
      return range.length === 0 || sizeBytes === 0
        ? undefined
        : { first: Math.max(0, sizeBytes - range.length), last: end };
  }
}
