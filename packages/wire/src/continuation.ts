// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";
import { headerValue } from "./headers.ts";
import { streamWindowBytes } from "./stream-window.ts";

/**
 * how an exchange goes on over another connection: the headers between gateway and bridge, with their meaning. No
 * caller and no guest ever sees one, because `space-` headers are stripped from both. The contract is in the README.
 */
export const continuationHeaders = {
  /** Names this exchange; chosen by the gateway, unguessable, new for each call of a caller's. */
  stream: "space-stream",
  /** How many bytes of the answer's body the gateway has: it goes on after them. Absent at the first presentation. */
  answerOffset: "space-offset",
  /** At which byte of the whole request body this presentation's body begins; what the bridge has already, it drops. */
  bodyOffset: "space-body-offset",
} as const;

/**
 * What each end keeps of what it has sent: more than the two windows between gateway and bridge (and the chunk in hand)
 * can hold, so whatever the other end has not received is still there; and at least 1 MiB of a process's output in base64.
 */
export const retainedBytes: number = 2 * streamWindowBytes + 512 * 1024;

/** How long the bridge waits for a cut stream's continuation; the time that a guest is frozen does not count. */
export const continuationWaitMs = 90_000;

/** One exchange's name and how far it has come. */
export interface StreamPosition {
  readonly key: string;
  /** Absent: this is the first presentation. */
  readonly answerOffset?: number;
  readonly bodyOffset?: number;
}

/**
 * How an operation goes on that was cut.
 * `answer`: presented at `path`, without a body; the answer's body goes on.
 * `both`: the same, and the request's body goes on too.
 * `repeat`: presented whole under the same key; it takes effect once, and each presentation gets its answer.
 */
export interface Continuation {
  readonly kind: "answer" | "both" | "repeat";
  readonly path: string;
}

const attach = "/process.Process/Connect";
const table: Readonly<Record<string, Continuation>> = {
  // Never presented again as what it was: a second Start must not be able to start a second process.
  "/process.Process/Start": { kind: "answer", path: attach },
  "/process.Process/Connect": { kind: "answer", path: attach },
  "/filesystem.Filesystem/WatchDir": { kind: "answer", path: "/filesystem.Filesystem/WatchDir" },
  "/process.Process/StreamInput": { kind: "both", path: "/process.Process/StreamInput" },
  "/process.Process/SendInput": { kind: "repeat", path: "/process.Process/SendInput" },
};

/** Undefined: a cut ends it. `path` as in a head, by exact text. */
export function continuationOf(method: string, path: string): Continuation | undefined {
  return method === "POST" && Object.hasOwn(table, path) ? table[path] : undefined;
}

/** The flat headers that say this position. */
export function positionHeaders({ key, answerOffset, bodyOffset }: StreamPosition): string[] {
  const { stream, answerOffset: answer, bodyOffset: body } = continuationHeaders;
  const headers: string[] = [stream, key];
  if (answerOffset !== undefined) headers.push(answer, answerOffset.toString());
  if (bodyOffset !== undefined) headers.push(body, bodyOffset.toString());
  return headers;
}

/** Reads them strictly; undefined when the exchange has no name. Throws `link/protocol`. */
export function readPosition(headers: readonly string[]): StreamPosition | undefined {
  const key = headerValue(headers, continuationHeaders.stream);
  const answerOffset = readOffset(headers, continuationHeaders.answerOffset);
  const bodyOffset = readOffset(headers, continuationHeaders.bodyOffset);
  if (key === undefined) {
    if (answerOffset === undefined && bodyOffset === undefined) return undefined;
    throw new SpaceError("link/protocol", { problem: "an offset of no stream" });
  }
  if (!/^[A-Za-z0-9_-]{22,64}$/.test(key)) {
    throw new SpaceError("link/protocol", { problem: "bad stream key" });
  }
  return {
    key,
    ...(answerOffset === undefined ? {} : { answerOffset }),
    ...(bodyOffset === undefined ? {} : { bodyOffset }),
  };
}

function readOffset(headers: readonly string[], name: string): number | undefined {
  const text = headerValue(headers, name);
  if (text === undefined) return undefined;
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw new SpaceError("link/protocol", { problem: "bad offset" });
  return value;
}
