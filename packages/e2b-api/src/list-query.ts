// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ListSandboxes, type ListSnapshots, SpaceError } from "@space/model";

import { parseCursor, parseSnapshotCursor } from "./cursor.ts";
import { type ApiLimits, pageLimit } from "./limits.ts";

type State = ListSandboxes["states"][number];
const states: readonly State[] = ["running", "paused"];
/** `lost` is SPACE's own, and shown only to who asks for it. */
const known: readonly State[] = [...states, "lost"];

/** Reads the query of `GET /v2/sandboxes`. Throws `input/invalid` naming the parameter. */
export function parseListQuery(query: URLSearchParams, limits: ApiLimits): ListSandboxes {
  const order = parseOrder(query.get("order"));
  const template = query.get("template");
  const startedAfter = query.get("startedAfter");
  const nextToken = query.get("nextToken");
  return {
    states: parseStates(query.getAll("state")),
    metadata: parseMetadata(query.get("metadata"), limits),
    ...(template === null || template === "" ? {} : { template }),
    ...(startedAfter === null ? {} : { startedAfterMs: parseTime(startedAfter) }),
    order,
    limit: parseLimit(query.get("limit")),
    ...(nextToken === null || nextToken === "" ? {} : { after: parseCursor(nextToken, order) }),
  };
}

/** `GET /sandboxes`: what runs, newest first, without pages. */
export function parseUnpagedQuery(query: URLSearchParams, limits: ApiLimits): ListSandboxes {
  const metadata = parseMetadata(query.get("metadata"), limits);
  return { states: ["running"], metadata, order: "desc", limit: limits.unpagedList };
}

/** Reads the query of `GET /snapshots`. Throws `input/invalid` naming the parameter. */
export function parseSnapshotQuery(query: URLSearchParams): ListSnapshots {
  const given = (name: string): string | undefined => query.get(name) || undefined;
  const [sandboxId, name, nextToken] = [given("sandboxID"), given("name"), given("nextToken")];
  return {
    ...(sandboxId === undefined ? {} : { sandboxId }),
    ...(name === undefined ? {} : { name }),
    limit: parseLimit(query.get("limit")),
    ...(nextToken === undefined ? {} : { after: parseSnapshotCursor(nextToken) }),
  };
}

/** `state=running,paused` or the parameter twice; both when there is none. */
function parseStates(values: readonly string[]): readonly State[] {
  const named = values.flatMap((value) => value.split(","));
  if (named.length === 0) return states;
  const found = new Set<State>();
  for (const name of named) {
    const state = known.find((one) => one === name);
    if (state === undefined) throw invalid("state", "must be running, paused, lost or several of them");
    found.add(state);
  }
  return [...found];
}

function parseOrder(value: string | null): "asc" | "desc" {
  if (value === null || value === "desc") return "desc";
  if (value === "asc") return "asc";
  throw invalid("order", "must be asc or desc");
}

function parseLimit(value: string | null): number {
  if (value === null) return pageLimit;
  const limit = /^[0-9]{1,3}$/.test(value) ? Number(value) : 0;
  if (limit >= 1 && limit <= pageLimit) return limit;
  throw invalid("limit", `must be 1 to ${pageLimit}`);
}

function parseTime(value: string): number {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;
  const atMs = form.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(atMs)) throw invalid("startedAfter", "must be a date and time of RFC 3339");
  return atMs;
}

/**
 * A filter `k=v&k2=v2`. E2B's clients encode each part twice (as a URI component, then as a form) before the query
 * string encodes the whole; a part that was encoded once reads the same, unless it holds a percent sign.
 */
function parseMetadata(value: string | null, limits: ApiLimits): Readonly<Record<string, string>> {
  if (value === null || value === "") return {};
  if (value.length > limits.metadataBytes) throw invalid("metadata", "is too long");
  const pairs = value.split("&").map((pair): readonly [string, string] => {
    const at = pair.indexOf("=");
    if (at < 1) throw invalid("metadata", "must be pairs of the form key=value");
    return [decodeTwice(pair.slice(0, at)), decodeTwice(pair.slice(at + 1))];
  });
  if (pairs.length > limits.metadataEntries) throw invalid("metadata", "has too many pairs");
  if (new Set(pairs.map(([key]) => key)).size !== pairs.length)
    throw invalid("metadata", "names a key twice");
  return Object.freeze(Object.fromEntries(pairs));
}

function decodeTwice(part: string): string {
  try {
    return decodeURIComponent(decodeURIComponent(part.replaceAll("+", " ")));
  } catch (cause) {
    throw new SpaceError("input/invalid", { field: "metadata", problem: "is not well encoded" }, { cause });
  }
}

function invalid(field: string, problem: string): SpaceError {
  return new SpaceError("input/invalid", { field, problem });
}
