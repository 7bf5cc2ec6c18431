// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

import type { Json, SandboxId } from "@space/model";

/** The response object of either version of HTTP. */
export type ApiResponse = ServerResponse | Http2ServerResponse;

/** What one request is answered with. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: no content. */
  readonly body?: Json;
  /** The sandbox that the operation made, which no path could name. For the audit log alone. */
  readonly made?: SandboxId;
}

const exposed = [
  "X-Next-Token",
  "X-Total-Running",
  "Space-Memory-Moved",
  "Retry-After",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
].join(", ");

/** On every answer: browsers may read it, nobody may keep it (it can hold access tokens). */
const always: Readonly<Record<string, string>> = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": exposed,
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
};

/** E2B's error body: the number in it equals the status, because its SDK tests that number. */
export function errorAnswer(
  status: number,
  message: string,
  extra: { readonly errorCode?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Answer {
  const { errorCode, headers } = extra;
  const body = { code: status, message, ...(errorCode === undefined ? {} : { error_code: errorCode }) };
  return headers === undefined ? { status, body } : { status, headers, body };
}

/** Sends the answer once; does nothing when the client is gone or was answered. */
export function sendAnswer(response: ApiResponse, answer: Answer, withBody: boolean): void {
  if (response.headersSent || response.writableEnded || response.destroyed) return;
  response.statusCode = answer.status;
  for (const [name, value] of Object.entries({ ...always, ...answer.headers }))
    response.setHeader(name, value);
  if (answer.body === undefined) {
    response.end();
    return;
  }
  const payload = Buffer.from(JSON.stringify(answer.body));
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", payload.length);
  if (withBody) response.end(payload);
  else response.end();
}
