// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ApiCaller,
  type AuditSink,
  type Clock,
  type ErrorCode,
  isSpaceError,
  Secret,
  SpaceError,
} from "@space/model";

import { type Answer, type ApiResponse, errorAnswer, sendAnswer } from "./answer.ts";
import { type ApiRequest, dropRest, readJson } from "./body.ts";
import { preflight } from "./cors.ts";
import { type ApiLimits, defaultLimits } from "./limits.ts";
import type { ApiService, OperationPorts } from "./operation-call.ts";
import { operations, readsBody } from "./operations.ts";
import { refusalOf, unsupported } from "./refusal.ts";
import { matchRoute, type RouteMatch } from "./routes.ts";
import { bodySchemas } from "./schema.ts";

export interface E2bApiOptions {
  readonly service: ApiService;
  /** Below which callers reach sandboxes: `space.test`, `space.test:8443`. Told to clients, never used here. */
  readonly domain: string;
  /** The version of E2B's agent protocol that the guests speak. */
  readonly envdVersion: string;
  readonly clock: Clock;
  /** Whether the system can serve; what `GET /health` says. */
  readonly ready?: () => boolean;
  readonly limits?: Partial<ApiLimits>;
  /** Hears of each request once, when its answer is known; not of `GET /health` and preflights. */
  readonly audit?: AuditSink;
  /** Hears why a request failed, with the cause, where that is our fault or may pass: for the log. Must not throw. */
  readonly failed?: (failure: unknown) => void;
}

export type E2bApi = (request: ApiRequest, response: ApiResponse) => void;

interface Ports extends OperationPorts {
  readonly ready: () => boolean;
  readonly audit: AuditSink;
  readonly failed: (failure: unknown) => void;
}

/**
 * E2B's control-plane REST surface over `service`, for servers of HTTP/1.1 and HTTP/2. The API key is checked before
 * anything else is looked at (but `GET /health` and CORS preflights). Each request gets one answer; the returned function
 * never throws. A server that listens for `checkContinue` must have called `writeContinue` before.
 */
export function createE2bApi(options: E2bApiOptions): E2bApi {
  const limits: ApiLimits = Object.freeze({ ...defaultLimits, ...options.limits });
  const ports: Ports = {
    service: options.service,
    clock: options.clock,
    limits,
    schemas: bodySchemas(limits),
    views: { domain: options.domain, envdVersion: options.envdVersion },
    ready: options.ready ?? (() => true),
    audit: options.audit ?? { record: () => undefined },
    failed: options.failed ?? (() => undefined),
  };
  return (request, response) => {
    const exchange = { request, response, ...parseTarget(request.url ?? "/") };
    serve(exchange, ports).catch(() => response.destroy()); // a bug ends the request, not the process
  };
}

interface Exchange {
  readonly request: ApiRequest;
  readonly response: ApiResponse;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** What became known of a request on the way to its answer. */
interface Progress {
  operation: string;
  caller: ApiCaller | null;
  sandboxId: string;
  code: ErrorCode | null;
}

async function serve(exchange: Exchange, ports: Ports): Promise<void> {
  const { request, response } = exchange;
  const progress: Progress = { operation: "unknown", caller: null, sandboxId: "", code: null };
  let answer: Answer | undefined;
  try {
    answer = await answerTo(exchange, progress, ports);
    if (answer?.made !== undefined) progress.sandboxId = answer.made;
  } catch (failure) {
    progress.code = isSpaceError(failure) ? failure.code : null;
    answer = refusalOf(failure);
    if (answer.status >= 500) ports.failed(failure);
  }
  record(progress, answer?.status ?? 0, ports);
  if (answer === undefined) return;
  response.on("error", () => undefined); // the client is gone; `close` follows
  sendAnswer(response, answer, request.method !== "HEAD");
  dropRest(request, response, ports);
}

/** Questions that nobody has to prove anything for are no one's deed. */
const unrecorded: ReadonlySet<string> = new Set(["health", "preflight"]);

function record({ operation, caller, sandboxId, code }: Progress, status: number, { audit }: Ports): void {
  if (unrecorded.has(operation)) return;
  audit.record("api/answered", {
    operation,
    tenantId: caller?.tenantId ?? null,
    keyId: caller?.keyId ?? null,
    sandboxId: sandboxId.slice(0, 64),
    status,
    code,
  });
}

/** Undefined when the client went away while it was still sending. */
async function answerTo(exchange: Exchange, progress: Progress, ports: Ports): Promise<Answer | undefined> {
  const { request, path } = exchange;
  const method = request.method ?? "GET";
  if (method === "OPTIONS") {
    progress.operation = "preflight";
    return preflight;
  }
  if (path === "/health" && (method === "GET" || method === "HEAD")) {
    progress.operation = "health";
    return health(ports);
  }
  progress.caller = await withDeadline(authenticate(request, ports), ports);
  const match = matchRoute(method, path);
  return match.kind === "operation"
    ? operate(exchange, match, { caller: progress.caller, progress }, ports)
    : refuseRoute(match, progress);
}

function health({ ready }: Ports): Answer {
  if (ready()) return { status: 200, body: { status: "ok" } };
  return errorAnswer(503, "not ready", { headers: { "Retry-After": "1" } });
}

async function authenticate(request: ApiRequest, { service }: Ports): Promise<ApiCaller> {
  const key = request.headers["x-api-key"];
  return service.authenticate(typeof key === "string" && key !== "" ? new Secret(key) : undefined);
}

function refuseRoute(match: Exclude<RouteMatch, { kind: "operation" }>, progress: Progress): Answer {
  progress.operation = match.kind;
  switch (match.kind) {
    case "unsupported":
      return unsupported(match.path);
    case "wrong-method":
      return errorAnswer(405, `allowed here: ${match.allow}`, { headers: { Allow: match.allow } });
    case "unknown":
      return errorAnswer(404, "no such path");
  }
}

async function operate(
  { request, query }: Exchange,
  match: Extract<RouteMatch, { kind: "operation" }>,
  { caller, progress }: { readonly caller: ApiCaller; readonly progress: Progress },
  ports: Ports,
): Promise<Answer | undefined> {
  const { name, sandboxId, templateId } = match;
  progress.operation = name;
  progress.sandboxId = sandboxId;
  let body: unknown = {};
  if (readsBody[name]) {
    const read = await readJson(request, ports);
    if (read.kind === "gone") return undefined;
    if (read.kind === "refused") return read.answer;
    body = read.value;
  }
  const idempotencyKey = headerText(request, "idempotency-key");
  return withDeadline(
    operations[name]({ caller, sandboxId, templateId, query, body, idempotencyKey }, ports),
    ports,
  );
}

/** Throws `deadline/passed` when it takes too long; what was running goes on to its own end. */
function withDeadline<T>(running: Promise<T>, { clock, limits }: Ports): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const limitMs = limits.operationMs;
  const cancel = clock.after(limitMs, () => {
    reject(new SpaceError("deadline/passed", { what: "the operation", limitMs }));
  });
  running.then(resolve, reject).finally(cancel);
  return promise;
}

function headerText(request: ApiRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** The path and query of a request line, in origin form or absolute form. */
function parseTarget(target: string): { readonly path: string; readonly query: URLSearchParams } {
  const relative = target.replace(/^https?:\/\/[^/?#]*/i, "");
  const at = relative.indexOf("?");
  const path = at === -1 ? relative : relative.slice(0, at);
  return { path, query: new URLSearchParams(at === -1 ? "" : relative.slice(at + 1)) };
}
