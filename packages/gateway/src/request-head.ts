// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isReserved } from "@space/wire";

/** What the gateway itself needs of a request's headers, and those that pass on to the sandbox. */
export interface RequestHead {
  readonly host: string;
  readonly sandboxId: string | undefined;
  readonly sandboxPort: string | undefined;
  readonly accessToken: string | undefined;
  /** Announced length of the body; undefined when none was announced. */
  readonly contentLength: number | undefined;
  readonly chunked: boolean;
  /** Flat: name, value; names in lower case; nothing hop-by-hop, nothing reserved, no credential of the platform. */
  readonly headers: string[];
}

export type RequestHeadOutcome =
  | { readonly kind: "read"; readonly head: RequestHead }
  | { readonly kind: "bad"; readonly problem: string }
  | { readonly kind: "too-many" };

type Role =
  | "pass"
  | "drop"
  | "host"
  | "authority"
  | "sandbox-id"
  | "sandbox-port"
  | "access-token"
  | "content-length"
  | "transfer-encoding"
  | "connection"
  | "cookie";

interface NamedRole {
  readonly name: string;
  readonly role: Role;
}

/**
 * Headers that do not simply pass. Dropped are those of one hop, and the platform's own credentials and routing: a guest
 * has no use for them, and its owner's code must not learn them.
 */
const roles: ReadonlyMap<string, Role> = new Map([
  ["host", "host"],
  [":authority", "authority"],
  ["e2b-sandbox-id", "sandbox-id"],
  ["e2b-sandbox-port", "sandbox-port"],
  ["x-access-token", "access-token"],
  ["content-length", "content-length"],
  ["transfer-encoding", "transfer-encoding"],
  ["connection", "connection"],
  ["cookie", "cookie"],
  ["x-api-key", "drop"],
  ["e2b-traffic-access-token", "drop"],
  ["expect", "drop"],
  ["keep-alive", "drop"],
  ["proxy-authenticate", "drop"],
  ["proxy-authorization", "drop"],
  ["proxy-connection", "drop"],
  ["te", "drop"],
  ["trailer", "drop"],
  ["upgrade", "drop"],
  ["http2-settings", "drop"],
]);

const nameCacheLimit = 1024;
const nameCacheChars = 64;
/** Spellings of header names seen so far, so that a usual name costs one look-up. Not emptied, only bounded. */
const spellings = new Map<string, NamedRole>();

function roleOf(raw: string): NamedRole {
  const known = spellings.get(raw);
  if (known !== undefined) return known;
  const name = raw.toLowerCase();
  const role = roles.get(name) ?? (isReserved(name) || name.startsWith(":") ? "drop" : "pass");
  const named: NamedRole = { name, role };
  if (spellings.size < nameCacheLimit && raw.length <= nameCacheChars) spellings.set(raw, named);
  return named;
}

/** The headers read so far. A header that decides something may come once: two readers could each believe another one. */
interface Reading {
  host: string | undefined;
  authority: string | undefined;
  sandboxId: string | undefined;
  sandboxPort: string | undefined;
  accessToken: string | undefined;
  contentLength: string | undefined;
  connection: string | undefined;
  /** HTTP/2 may split it over several lines; HTTP/1 servers expect one. */
  cookie: string | undefined;
  chunked: boolean;
  twice: string | undefined;
}

/** Reads node's flat `rawHeaders` in one pass. */
export function readRequestHead(raw: readonly string[], maxLines: number): RequestHeadOutcome {
  if (raw.length > 2 * maxLines) return { kind: "too-many" };
  const reading: Reading = {
    host: undefined,
    authority: undefined,
    sandboxId: undefined,
    sandboxPort: undefined,
    accessToken: undefined,
    contentLength: undefined,
    connection: undefined,
    cookie: undefined,
    chunked: false,
    twice: undefined,
  };
  const headers: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const { name, role } = roleOf(raw[at] ?? "");
    const value = raw[at + 1] ?? "";
    if (role === "pass") headers.push(name, value);
    else if (role !== "drop") take(reading, role, value);
  }
  return finish(reading, headers);
}

function take(reading: Reading, role: Exclude<Role, "pass" | "drop">, value: string): void {
  switch (role) {
    case "host":
      if (reading.host !== undefined) reading.twice = "host";
      reading.host = value;
      return;
    case "authority":
      reading.authority = value;
      return;
    case "sandbox-id":
      if (reading.sandboxId !== undefined) reading.twice = "e2b-sandbox-id";
      reading.sandboxId = value;
      return;
    case "sandbox-port":
      if (reading.sandboxPort !== undefined) reading.twice = "e2b-sandbox-port";
      reading.sandboxPort = value;
      return;
    case "access-token":
      if (reading.accessToken !== undefined) reading.twice = "x-access-token";
      reading.accessToken = value;
      return;
    case "content-length":
      if (reading.contentLength !== undefined) reading.twice = "content-length";
      reading.contentLength = value;
      return;
    case "transfer-encoding":
      reading.chunked = true;
      return;
    case "connection":
      reading.connection = reading.connection === undefined ? value : `${reading.connection},${value}`;
      return;
    case "cookie":
      reading.cookie = reading.cookie === undefined ? value : `${reading.cookie}; ${value}`;
      return;
  }
}

function finish(reading: Reading, headers: string[]): RequestHeadOutcome {
  const { host, authority, contentLength, connection, chunked, twice } = reading;
  if (twice !== undefined) return { kind: "bad", problem: `${twice} twice` };
  if (authority !== undefined && host !== undefined && host !== authority)
    return { kind: "bad", problem: "host differs from authority" };
  if (contentLength !== undefined && !/^[0-9]{1,15}$/.test(contentLength))
    return { kind: "bad", problem: "bad content-length" };
  const name = authority ?? host ?? "";
  const passing = connection === undefined ? headers : withoutNamed(headers, connection);
  passing.push("host", name);
  if (reading.cookie !== undefined) passing.push("cookie", reading.cookie);
  if (contentLength !== undefined && !chunked) passing.push("content-length", contentLength);
  return {
    kind: "read",
    head: {
      host: name,
      sandboxId: reading.sandboxId,
      sandboxPort: reading.sandboxPort,
      accessToken: reading.accessToken === "" ? undefined : reading.accessToken,
      contentLength: contentLength === undefined || chunked ? undefined : Number(contentLength),
      chunked,
      headers: passing,
    },
  };
}

/** Without the headers that `connection` declares to be of one hop (RFC 9110 section 7.6.1). */
function withoutNamed(headers: string[], connection: string): string[] {
  const text = connection.toLowerCase();
  if (text === "keep-alive" || text === "close" || text === "upgrade") return headers;
  const named = new Set(text.split(",").map((name) => name.trim()));
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? "";
    if (!named.has(name)) kept.push(name, headers[at + 1] ?? "");
  }
  return kept;
}
