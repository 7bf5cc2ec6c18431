// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SandboxId, WantedAccess } from "@space/model";
import { agentPort, guestOperation, type OperationClass, type OperationTarget } from "@space/wire";
import type { OperationRequest } from "./attempt.ts";
import { type CredentialOutcome, controlCredential, portCredential } from "./caller-credential.ts";
import type { Refusal } from "./refusal.ts";
import type { RequestHead } from "./request-head.ts";
import type { RouteQuestion } from "./route-cache.ts";

/** A request to a sandbox, before anything was looked up. */
export interface SandboxCall {
  readonly sandboxId: SandboxId;
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly head: RequestHead;
  readonly protocol: "http" | "websocket";
}

export type SandboxRequestOutcome =
  | { readonly kind: "operation"; readonly request: OperationRequest }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** What is needed and shown for a call; the table of guest operations is the only way to the agent. */
export function readSandboxRequest(call: SandboxCall): SandboxRequestOutcome {
  if (!/^[A-Z]{1,16}$/.test(call.method)) return bad("bad method");
  if (!/^\/[\x21-\x7e]*$/.test(call.path)) return bad("bad path");
  return call.port === agentPort ? controlRequest(call) : portRequest(call);
}

const control: OperationTarget = { purpose: "control" };

function controlRequest(call: SandboxCall): SandboxRequestOutcome {
  const { method, path, head, protocol } = call;
  const operation = guestOperation(method, path);
  // Among the unknown: the agent's own controls (/init, /freeze and so on), which nobody outside may reach.
  if (operation === undefined || protocol !== "http")
    return { kind: "refused", refusal: { kind: "unknown-operation" } };
  const shown = controlCredential(method, path, head.accessToken);
  const wanted: WantedAccess = { purpose: "control", scope: operation.scope };
  return request(call, { target: control, class: operation.class, wanted, name: operation.scope }, shown);
}

function portRequest(call: SandboxCall): SandboxRequestOutcome {
  const { port, protocol } = call;
  const target: OperationTarget & WantedAccess = { purpose: "service-port", port, protocol };
  // what a user's own server does with a request is not ours to know.
  return request(
    call,
    { target, class: "port", wanted: target, name: `${port}/${protocol}` },
    portCredential(),
  );
}

interface Asked {
  readonly target: OperationTarget;
  readonly class: OperationClass;
  readonly wanted: WantedAccess;
  /** The access as text, for the cache's key. */
  readonly name: string;
}

function request(call: SandboxCall, asked: Asked, outcome: CredentialOutcome): SandboxRequestOutcome {
  if (outcome.kind === "bad") return bad(outcome.problem);
  if (outcome.kind === "missing")
    return { kind: "refused", refusal: { kind: "unauthenticated", problem: "missing" } };
  const { sandboxId, method, path, head } = call;
  const { credential, cacheText } = outcome.shown;
  return {
    kind: "operation",
    request: {
      sandboxId,
      target: asked.target,
      class: asked.class,
      method,
      path,
      headers: head.headers,
      question: {
        key: keyOf(sandboxId, asked.name, cacheText),
        cacheText,
        sandboxId,
        credential,
        wanted: asked.wanted,
      },
    },
  };
}

/** The id has a fixed length and the access no line break: no two questions share a key. */
function keyOf(sandboxId: SandboxId, access: string, cacheText: string): string {
  return `${sandboxId}${access}\n${cacheText}`;
}

/** The same caller's question for the agent's operation at another path of the table. */
export function agentQuestion(asked: RouteQuestion, path: string): RouteQuestion {
  const operation = guestOperation("POST", path);
  if (operation === undefined) throw new TypeError("no such operation of the agent");
  const { sandboxId, credential, cacheText } = asked;
  const wanted: WantedAccess = { purpose: "control", scope: operation.scope };
  return { key: keyOf(sandboxId, operation.scope, cacheText), cacheText, sandboxId, credential, wanted };
}

function bad(problem: string): SandboxRequestOutcome {
  return { kind: "refused", refusal: { kind: "bad-request", problem } };
}
