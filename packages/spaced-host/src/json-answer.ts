// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { EnvdError } from "./envd-error.ts";
import type { Exchange } from "./exchange.ts";

/** Answers with a JSON document. */
export function answerJson(exchange: Exchange, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  exchange.answer(
    status,
    ["content-type", "application/json", "content-length", body.length.toString()],
    body,
  );
}

/** An error as E2B's plain HTTP routes say it. */
export function answerHttpError(exchange: Exchange, { status, message }: EnvdError): void {
  answerJson(exchange, status, { code: status, message });
}
