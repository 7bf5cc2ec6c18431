// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { unreachable } from "@space/model";
import { agentPort, headerValue } from "@space/wire";

/** Why the gateway answers a request itself. */
export type Refusal =
  | { readonly kind: "bad-request"; readonly problem: string }
  | { readonly kind: "unauthenticated"; readonly problem: "missing" | "wrong" | "signature-expired" }
  /** A worker's `deny`: nothing more is said outside. */
  | { readonly kind: "denied" }
  | { readonly kind: "unknown-operation" }
  /** No such sandbox, not the caller's, or nothing runs: alike outside. */
  | { readonly kind: "not-running" }
  | { readonly kind: "port-closed" }
  | { readonly kind: "too-many-requests" }
  | { readonly kind: "body-too-large" }
  | { readonly kind: "headers-too-large" }
  /** The guest's server answered something that may not pass. */
  | { readonly kind: "bad-answer" }
  /** Nothing happened: the caller may try again after the time given. */
  | { readonly kind: "try-again"; readonly afterMs: number }
  /** no answer came, and nobody can say whether it had its effect. The caller may look, and try again. */
  | { readonly kind: "outcome-unknown"; readonly afterMs: number };

/** About which request a refusal is. */
export interface RefusedRequest {
  readonly sandbox: string;
  readonly port: number;
  /** The caller's headers, flat, for telling a browser from a program. */
  readonly headers: readonly string[];
}

export interface RefusalAnswer {
  readonly status: number;
  readonly headers: string[];
  readonly body: Buffer;
}

interface Told {
  readonly status: number;
  readonly message: string;
  /** Members before and after the message, in the order that clients of E2B know. */
  readonly about?: "sandbox" | "sandbox-and-port";
  readonly retryAfterMs?: number;
}

function tell(refusal: Refusal, port: number): Told {
  switch (refusal.kind) {
    case "bad-request":
      return { status: 400, message: refusal.problem };
    case "unauthenticated":
      return unauthenticated(refusal.problem, port);
    case "denied":
      return { status: 403, message: "forbidden" };
    case "unknown-operation":
      return { status: 404, message: "not found" };
    case "not-running":
      return { status: 502, message: "The sandbox was not found", about: "sandbox" };
    case "port-closed":
      return {
        status: 502,
        message: "The sandbox is running but port is not open",
        about: "sandbox-and-port",
      };
    case "too-many-requests":
      return { status: 429, message: "too many requests to this sandbox", retryAfterMs: 1000 };
    case "body-too-large":
      return { status: 413, message: "the body is too large" };
    case "headers-too-large":
      return { status: 431, message: "the headers are too large" };
    case "bad-answer":
      return {
        status: 502,
        message: "The sandbox's server sent an answer that cannot be passed on",
        about: "sandbox",
      };
    case "try-again":
      return {
        status: 503,
        message: "the sandbox cannot be reached at the moment, try again",
        retryAfterMs: refusal.afterMs,
      };
    case "outcome-unknown":
      return {
        status: 503,
        message: "the connection to the sandbox was lost: whether the request had its effect is unknown",
        retryAfterMs: refusal.afterMs,
      };
    default:
      return unreachable(refusal);
  }
}

function unauthenticated(problem: "missing" | "wrong" | "signature-expired", port: number): Told {
  if (port !== agentPort) return { status: 403, message: "a valid traffic access token is required" };
  if (problem === "signature-expired") return { status: 401, message: "signature is already expired" };
  return { status: 401, message: "a valid access token or signature is required" };
}

/** The answer as E2B's clients expect it: JSON with the status repeated as `code`, or a page for a person's browser. */
export function refusalAnswer(refusal: Refusal, request: RefusedRequest): RefusalAnswer {
  const told = tell(refusal, request.port);
  const page = told.about !== undefined && isNavigation(request.headers);
  const body = Buffer.from(page ? pageOf(told, request) : JSON.stringify(jsonOf(told, request)));
  const headers = [
    "content-type",
    page ? "text/html; charset=utf-8" : "application/json",
    "content-length",
    String(body.length),
    "cache-control",
    "no-store",
  ];
  if (request.port === agentPort) headers.push("access-control-allow-origin", "*");
  if (told.retryAfterMs !== undefined) headers.push("retry-after", String(seconds(told.retryAfterMs)));
  return { status: told.status, headers, body };
}

function seconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000));
}

function jsonOf({ status, message, about }: Told, { sandbox, port }: RefusedRequest): object {
  switch (about) {
    case undefined:
      return { code: status, message };
    case "sandbox":
      return { sandboxId: sandbox, message, code: status };
    case "sandbox-and-port":
      return { sandboxId: sandbox, message, port, code: status };
    default:
      return unreachable(about);
  }
}

function isNavigation(headers: readonly string[]): boolean {
  if (headerValue(headers, "user-agent")?.includes("Mozilla/") !== true) return false;
  const mode = headerValue(headers, "sec-fetch-mode");
  if (mode !== undefined) return mode === "navigate";
  return headerValue(headers, "accept")?.includes("text/html") === true;
}

/** Sandbox ids here are checked text of `[a-z0-9]`, and the messages are ours: nothing needs escaping. */
function pageOf({ status, message }: Told, { sandbox, port }: RefusedRequest): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${status}: sandbox ${sandbox}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}code{font-size:.95em}</style>
<h1>${message}</h1>
<p>Sandbox <code>${sandbox}</code>, port <code>${port}</code>.</p>
</html>
`;
}
