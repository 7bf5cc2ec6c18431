// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/** How long a browser may remember the answer. */
const maxAgeSeconds = 7200;

/** The answer to a browser's CORS preflight for the agent's port: any origin, whatever it asks, no cookies. */
export function preflightHeaders(rawHeaders: readonly string[]): string[] {
  return [
    "access-control-allow-origin",
    "*",
    "access-control-allow-methods",
    "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
    "access-control-allow-headers",
    asked(rawHeaders) ?? "*",
    "access-control-max-age",
    String(maxAgeSeconds),
    "content-length",
    "0",
  ];
}

/** The header names asked for, when they are nothing but names. `*` alone would leave out `authorization`. */
function asked(raw: readonly string[]): string | undefined {
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (raw[at]?.toLowerCase() !== "access-control-request-headers") continue;
    const names = raw[at + 1] ?? "";
    return /^[a-zA-Z0-9-]+(?:, ?[a-zA-Z0-9-]+)*$/.test(names) ? names : undefined;
  }
  return undefined;
}
