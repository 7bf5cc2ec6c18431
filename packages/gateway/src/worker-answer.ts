// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type AdmissionId, type Digest, isSpaceError, SpaceError } from "@space/model";
import {
  type AnswerHead,
  admissionHeader,
  admittedHeader,
  failureHeader,
  parseAnswerHead,
  passableHeaders,
  rejectedRouteHeader,
  reservedPrefix,
  verdictHeader,
} from "@space/wire";

/** what a worker's head says. Only these are recognised; anything else is a transport error. */
export type WorkerAnswer =
  /** Let through: the guest's own answer, with the headers that may go to the caller. */
  | { readonly kind: "admitted"; readonly head: AnswerHead }
  /** Let through, but worker or bridge had to answer instead of the guest; `code` is a `SpaceError` code. */
  | { readonly kind: "failed"; readonly code: string }
  | { readonly kind: "refresh-route" }
  | { readonly kind: "deny" }
  | { readonly kind: "unrecognised"; readonly problem: string };

const readByUs = [
  admittedHeader,
  admissionHeader,
  verdictHeader,
  rejectedRouteHeader,
  failureHeader,
] as const;
type ReservedHeaders = Partial<Record<(typeof readByUs)[number], string>>;

/** Reads a head that came from the worker for the request with this admission id, presented with this route. */
export function readWorkerAnswer(bytes: Buffer, admission: AdmissionId, presented: Digest): WorkerAnswer {
  try {
    const head = parseAnswerHead(JSON.parse(bytes.toString("utf8")));
    return judge(head, takeReserved(head.headers), admission, presented);
  } catch (error) {
    if (isSpaceError(error) || error instanceof SyntaxError) return unrecognised("malformed head");
    throw error;
  }
}

function judge(
  head: AnswerHead,
  reserved: ReservedHeaders,
  admission: AdmissionId,
  presented: Digest,
): WorkerAnswer {
  const admitted = reserved[admittedHeader];
  const verdict = reserved[verdictHeader];
  if (admitted !== undefined && verdict === undefined) {
    if (admitted !== admission) return unrecognised("another request's admission");
    const code = head.portClosed === true ? "sandbox/port-closed" : reserved[failureHeader];
    if (code !== undefined) return { kind: "failed", code };
    return { kind: "admitted", head: { status: head.status, headers: passableHeaders(head.headers) } };
  }
  if (verdict === undefined) return unrecognised("neither admission nor verdict");
  if (admitted !== undefined) return unrecognised("both admission and verdict");
  if (reserved[admissionHeader] !== admission) return unrecognised("another request's verdict");
  if (verdict === "deny" && head.status === 403) return { kind: "deny" };
  if (verdict !== "refresh-route" || head.status !== 421) return unrecognised("unknown verdict");
  if (reserved[rejectedRouteHeader] !== presented) return unrecognised("rejects another route");
  return { kind: "refresh-route" };
}

/** The reserved headers, each at most once. Throws `link/protocol` for a repeated one: nobody could tell which counts. */
function takeReserved(headers: readonly string[]): ReservedHeaders {
  const reserved: ReservedHeaders = {};
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const text = headers[at] ?? "";
    if (!text.startsWith(reservedPrefix)) continue;
    const name = readByUs.find((known) => known === text);
    if (name === undefined) continue;
    if (reserved[name] !== undefined) throw new SpaceError("link/protocol", { problem: "repeated header" });
    reserved[name] = headers[at + 1] ?? "";
  }
  return reserved;
}

function unrecognised(problem: string): WorkerAnswer {
  return { kind: "unrecognised", problem };
}
