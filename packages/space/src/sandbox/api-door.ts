// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { realpathSync } from "node:fs";
import { askAdmin } from "../admin/admin-socket.ts";
import { adminSocketPath } from "../admin/open-admin.ts";
import { runDirectory } from "../data/data-directory.ts";
import { readOwnersKey } from "../data/owners-key.ts";
import { UsageError } from "../failure.ts";
import { ApiRefusal } from "./api-refusal.ts";

/** The same door as E2B's SDKs use, and the key to it. */
export interface ApiDoor {
  readonly apiUrl: string;
  /** Where the sandboxes' agents are reached in URL mode. */
  readonly sandboxUrl: string;
  readonly apiKey: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** How long the API may take: a pause saves all memory. */
const answerLimitMs = 150_000;
const answerLimitBytes = 16 * 1024 * 1024;

/**
 * The variables that E2B's SDKs read, or the SPACE that runs on a data directory: `data` when it was named, else the
 * variables, else `usual`. A key without an address is for the SPACE that runs here. Throws {@link UsageError} where none runs.
 */
export async function findDoor(
  environment: Environment,
  { data, usual }: { readonly data: string | undefined; readonly usual: string },
): Promise<ApiDoor> {
  const { E2B_API_URL: url = "", E2B_SANDBOX_URL: sandboxUrl = "", E2B_API_KEY: key = "" } = environment;
  if (data !== undefined) return localDoor(data);
  if (url === "") return { ...(await localDoor(usual)), ...(key === "" ? {} : { apiKey: key }) };
  if (key === "") throw new UsageError("E2B_API_URL is set and E2B_API_KEY is not: set both, or neither");
  return { apiUrl: httpUrl(url), sandboxUrl: httpUrl(sandboxUrl === "" ? url : sandboxUrl), apiKey: key };
}

async function localDoor(data: string): Promise<ApiDoor> {
  const key = readOwnersKey(data);
  const path = key && adminSocketPath(runDirectory(realpathSync(data)));
  const answer = path === undefined ? undefined : await askAdmin(path, "api/address", {});
  const apiUrl = (answer?.value as { readonly apiUrl?: unknown } | undefined)?.apiUrl; // cast: checked below
  if (key === undefined || typeof apiUrl !== "string")
    throw new UsageError(
      `no SPACE runs on ${data}: start ./space up, name another --data, or set E2B_API_URL and E2B_API_KEY`,
    );
  return { apiUrl, sandboxUrl: apiUrl, apiKey: key.reveal() };
}

function httpUrl(text: string): string {
  const { protocol, href } = URL.canParse(text) ? new URL(text) : { protocol: "", href: "" };
  if (protocol !== "http:" && protocol !== "https:")
    throw new UsageError(`${text} is no http or https address`);
  return href.replace(/\/+$/, "");
}

export interface ApiAnswer {
  readonly body: unknown;
  readonly headers: Headers;
}

/** One request as the key's owner. Throws {@link ApiRefusal}, and {@link UsageError} where nobody listens. */
export async function askApi(
  { apiUrl, apiKey }: ApiDoor,
  method: "GET" | "POST" | "DELETE",
  path: string,
  body?: unknown,
): Promise<ApiAnswer> {
  const headers = { "X-API-Key": apiKey, ...(body !== undefined && { "content-type": "application/json" }) };
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const limit = AbortSignal.timeout(answerLimitMs);
  const response = await fetch(`${apiUrl}${path}`, { method, headers, signal: limit, ...content }).catch(
    (cause: unknown) => {
      throw new UsageError(`${apiUrl} does not answer`, { cause });
    },
  );
  const text = await limitedText(response, answerLimitBytes);
  if (!response.ok)
    throw new ApiRefusal(response.status, problemIn(text) ?? `answered with ${response.status}`);
  return { body: text === "" ? undefined : parsed(text), headers: response.headers };
}

/** The whole of an answer's body, which is no larger than `limitBytes`. Throws {@link ApiRefusal}. */
export async function limitedText(response: Response, limitBytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of response.body ?? []) {
    pieces.push(piece);
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes)
      throw new ApiRefusal(response.status, `an answer of more than ${limitBytes} bytes`);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError("the answer is not JSON: is this address SPACE's API?", { cause });
  }
}

/** What E2B's errors, and the agent's, say for people. */
export function problemIn(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("message" in value)) return undefined;
    return typeof value.message === "string" ? value.message : undefined;
  } catch {
    return undefined; // not of our making; the status says it
  }
}
