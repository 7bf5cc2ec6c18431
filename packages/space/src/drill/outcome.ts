// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import * as v from "valibot";
import { type Answer, messagesOf } from "./caller.ts";

/** What one operation came to, for the count of a drill. */
export type Outcome =
  /** Served; what it found. */
  | { readonly kind: "served"; readonly text: string }
  /** A documented answer that tells the caller to try again. */
  | { readonly kind: "try-again"; readonly what: string }
  /** Anything else: an error. */
  | { readonly kind: "error"; readonly what: string };

const dataSchema = v.object({
  event: v.object({ data: v.object({ stdout: v.string() }) }),
});
const endSchema = v.object({ event: v.object({ end: v.object({ status: v.string() }) }) });
const failureSchema = v.object({ error: v.object({ code: v.string() }) });
const unknownSchema = v.object({ message: v.pipe(v.string(), v.endsWith("is unknown")) });
const notRunningSchema = v.object({ code: v.literal(502), sandboxId: v.string() });

/** The outcome of a read whose answer's body is what was asked for. */
export function readOutcome(answer: Answer): Outcome {
  const refused = refusedOutcome(answer);
  if (refused !== undefined) return refused;
  return { kind: "served", text: answer.kind === "answered" ? answer.body.toString("utf8") : "" };
}

/** The outcome of a program's run: what it wrote, if it ended well. */
export function runOutcome(answer: Answer): Outcome {
  const refused = refusedOutcome(answer);
  if (refused !== undefined) return refused;
  const messages = answer.kind === "answered" ? messagesOf(answer.body) : [];
  let text = "";
  let status: string | undefined;
  for (const { flags, message } of messages) {
    const data = v.safeParse(dataSchema, message);
    if (data.success) text += Buffer.from(data.output.event.data.stdout, "base64").toString("utf8");
    const end = v.safeParse(endSchema, message);
    if (end.success) status = end.output.event.end.status;
    const failure = v.safeParse(failureSchema, message);
    if ((flags & 2) !== 0 && failure.success) return endedOutcome(failure.output.error.code);
  }
  return status === "exit status 0" ? { kind: "served", text } : { kind: "error", what: `ended: ${status}` };
}

/** how a stream ends that could not go on: its process did not outlive the move, or it was away for too long. */
function endedOutcome(code: string): Outcome {
  const isTyped = code === "aborted" || code === "unavailable";
  return isTyped ? { kind: "try-again", what: `stream ${code}` } : { kind: "error", what: `stream ${code}` };
}

/** Undefined: it was answered with 200. */
function refusedOutcome(answer: Answer): Outcome | undefined {
  if (answer.kind === "broken") return { kind: "error", what: answer.problem };
  const { status, retryAfter, body } = answer;
  if (status >= 200 && status <= 299) return undefined;
  if (status === 503 && retryAfter)
    return { kind: "try-again", what: isUnknown(body) ? "503 outcome unknown" : "503 try again" };
  // E2B's word for a sandbox that is paused: it may be asked again when it runs.
  if (status === 502 && v.is(notRunningSchema, parsed(body)))
    return { kind: "try-again", what: "502 paused" };
  return { kind: "error", what: `status ${status}: ${body.toString("utf8", 0, 200)}` };
}

/** nobody can say whether it had its effect. */
function isUnknown(body: Buffer): boolean {
  return v.is(unknownSchema, parsed(body));
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined; // not ours: an error all the same
  }
}
