// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { reservedPrefix } from "./operation-head.ts";

/** Headers that describe one hop and never pass on (RFC 9110 section 7.6.1). */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Whether the header (name in lower case) is ours alone: never taken from a caller or a guest. */
export function isReserved(name: string): boolean {
  return name.startsWith(reservedPrefix);
}

/**
 * The headers that may pass to the next hop, from node's flat `rawHeaders`: names in lower case, without hop-by-hop
 * headers, those named by `connection`, anything reserved, and `extra` names. An upgrade keeps its two headers by `keep`.
 */
export function passableHeaders(
  raw: readonly string[],
  options: { readonly drop?: ReadonlySet<string>; readonly keep?: ReadonlySet<string> } = {},
): string[] {
  const named = namedByConnection(raw);
  const headers: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? "").toLowerCase();
    const kept = options.keep?.has(name) === true;
    const dropped = hopByHop.has(name) || named.has(name) || options.drop?.has(name) === true;
    if (isReserved(name) || name.startsWith(":") || (dropped && !kept)) continue;
    headers.push(name, raw[at + 1] ?? "");
  }
  return headers;
}

const nothing: ReadonlySet<string> = new Set();

function namedByConnection(raw: readonly string[]): ReadonlySet<string> {
  let named: Set<string> | undefined;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (raw[at]?.toLowerCase() !== "connection") continue;
    named ??= new Set();
    for (const name of (raw[at + 1] ?? "").split(",")) named.add(name.trim().toLowerCase());
  }
  return named ?? nothing;
}

/** The first value of a header in a flat list whose names are in lower case. */
export function headerValue(headers: readonly string[], name: string): string | undefined {
  for (let at = 0; at + 1 < headers.length; at += 2) if (headers[at] === name) return headers[at + 1];
  return undefined;
}
