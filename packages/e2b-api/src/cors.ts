// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Answer } from "./answer.ts";

/** The headers that E2B's SDKs send to the control plane. */
const sdkHeaders = [
  "X-API-KEY",
  "Authorization",
  "Content-Type",
  "User-Agent",
  "Idempotency-Key",
  "browser",
  "lang",
  "lang_version",
  "package_version",
  "publisher",
  "sdk_runtime",
  "system",
].join(", ");

/** Any page may ask, for the key and not the page is what authorises; so it says the same about every path. */
export const preflight: Answer = {
  status: 204,
  headers: {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": sdkHeaders,
    "Access-Control-Max-Age": "7200",
  },
};
