// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type CreateSandbox, SpaceError } from "@space/model";

import { idempotencyKeyLimit } from "./limits.ts";
import type { CreateBody } from "./schema.ts";

/** For clients that can send metadata alone: E2B's SDKs. */
const autoRecoverKey = "space.auto-recover";

/** Translates a checked body. Throws `input/invalid` where its members contradict each other. */
export function createRequest(body: CreateBody, idempotencyKey: string | undefined): CreateSandbox {
  const { autoPause, autoPauseMemory: keepMemory = true, autoResume, workerID } = body;
  if (body.autoPauseMemory !== undefined && !keepMemory && !autoPause) {
    throw invalid("autoPauseMemory", "can be false only with autoPause");
  }
  if (!keepMemory && autoResume?.enabled === true) {
    throw invalid("autoResume", "cannot wake what was paused without its memory");
  }
  return {
    template: body.templateID,
    timeoutMs: body.timeout * 1000,
    metadata: body.metadata,
    variables: body.envVars,
    onTimeout: autoPause ? "pause" : "kill",
    keepMemory,
    autoResume: autoResume?.enabled ?? false,
    autoRecover: body.autoRecover?.enabled ?? body.metadata[autoRecoverKey] === "true",
    ...(workerID === undefined ? {} : { workerId: workerID }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey: checkedKey(idempotencyKey) }),
  };
}

function checkedKey(key: string): string {
  if (key.length <= idempotencyKeyLimit && /^[\x21-\x7e]+$/.test(key)) return key;
  throw invalid("Idempotency-Key", `must be 1 to ${idempotencyKeyLimit} visible ASCII characters`);
}

/**
 * The first thing that the body asks for and SPACE cannot give yet: refused, because a caller that asked for a rule must
 * not be given a sandbox without it. `allow_internet_access` is not among them: as long as guests reach no network at
 * all, `false` holds, and `true` is what old SDKs send unasked.
 */
export function unsupportedFeature(body: CreateBody): string | undefined {
  const { network = {}, mcp, iam = {}, volumeMounts = [] } = body;
  for (const [name, value] of Object.entries(network)) {
    if (!isDefaultRule(name, value)) return `network.${name}`;
  }
  if (mcp !== undefined && mcp !== null) return "mcp";
  if (Object.keys(iam).length > 0) return "iam";
  if (volumeMounts.length > 0) return "volumeMounts";
  return undefined;
}

/** Whether a member of `network` asks for what is so anyway. */
function isDefaultRule(name: string, value: unknown): boolean {
  if (value === null) return true;
  if (name === "allowPublicTraffic") return value === true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function invalid(field: string, problem: string): SpaceError {
  return new SpaceError("input/invalid", { field, problem });
}
