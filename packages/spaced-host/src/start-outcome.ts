// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { EnvdError } from "./envd-error.ts";
import { answerJson } from "./json-answer.ts";
import type { OperationContext } from "./operation-context.ts";
import { endFields } from "./process-events.ts";
import type { StartOutcome } from "./start-memory.ts";

/** The caller's idempotency key, if there is one. Throws `invalid_argument` for one that is not of its form. */
export function idempotencyKey(context: OperationContext): string | undefined {
  const key = context.header("idempotency-key");
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new EnvdError("invalid_argument", "the idempotency key must be 1 to 255 printable characters");
}

/** What a key stands for: the whole of the start that it was first used for, its user included. */
export function startDigest(request: unknown, context: OperationContext): string {
  const whole = JSON.stringify([context.header("authorization") ?? "", request]);
  return createHash("sha256").update(whole).digest("base64url");
}

/** R-28, "did it run?": `GET /process/outcome` with the `idempotency-key` of a start. */
export async function reportOutcome(context: OperationContext): Promise<void> {
  const key = idempotencyKey(context);
  if (key === undefined) throw new EnvdError("invalid_argument", "the idempotency key is missing");
  answerJson(context.exchange, 200, outcomeFields(await context.activation.starts.outcome(key)));
}

function outcomeFields(outcome: StartOutcome): JsonObject {
  switch (outcome.kind) {
    case "did-not-run":
    case "unknown":
      return { outcome: outcome.kind };
    case "running":
      return { outcome: "ran", pid: outcome.pid };
    case "ended":
      return { outcome: "ran", pid: outcome.pid, end: endFields(outcome.exit) };
  }
}
