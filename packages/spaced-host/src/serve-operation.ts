// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { headerValue, readPosition, type StreamPosition } from "@space/wire";
import { answerUnaryError, type RpcMethod } from "./connect-rpc.ts";
import type { StreamKind } from "./continued-streams.ts";
import { EnvdError, translate } from "./envd-error.ts";
import type { Exchange } from "./exchange.ts";
import { composeFiles } from "./file-compose.ts";
import { downloadFile } from "./file-download.ts";
import { uploadFiles } from "./file-upload.ts";
import { filesystemMethods } from "./filesystem-service.ts";
import type { HostedActivation } from "./hosted-activation.ts";
import { answerHttpError, answerJson } from "./json-answer.ts";
import { OperationContext } from "./operation-context.ts";
import { processMethods } from "./process-service.ts";
import { CallerGone } from "./request-body.ts";
import { servePort } from "./service-port.ts";
import { reportOutcome } from "./start-outcome.ts";
import { StreamLost } from "./stream-lost.ts";
import { reportMetrics } from "./usage-metrics.ts";

interface Route {
  /** Short operations are waited for before a pause; the others go on until they are cut. */
  readonly short: boolean;
  /** In which form an error is said. */
  readonly errors: "http" | "rpc";
  readonly run: (context: OperationContext) => Promise<void>;
}

const streamingMethods: ReadonlySet<string> = new Set(["Start", "Connect", "StreamInput", "WatchDir"]);
const routes: ReadonlyMap<string, Route> = new Map([
  http("GET /health", async ({ exchange }) => exchange.answer(204, [])),
  http("GET /metrics", reportMetrics),
  http("GET /envs", async ({ activation, exchange }) =>
    answerJson(exchange, 200, activation.facts.variables),
  ),
  http("GET /files", downloadFile),
  http("HEAD /files", downloadFile),
  http("POST /files", uploadFiles),
  http("POST /files/compose", composeFiles),
  http("GET /process/outcome", reportOutcome),
  ...rpc("process.Process", processMethods),
  ...rpc("filesystem.Filesystem", filesystemMethods),
]);

/** The operations that have a route, as method and path. */
export const servedOperations: readonly string[] = [...routes.keys()];

const portRoute: Route = { short: false, errors: "http", run: () => Promise.resolve() };

function http(name: string, run: Route["run"]): [string, Route] {
  return [name, { short: true, errors: "http", run }];
}

function rpc(service: string, methods: ReadonlyMap<string, RpcMethod>): [string, Route][] {
  return [...methods].map(([name, run]) => {
    return [`POST /${service}/${name}`, { short: !streamingMethods.has(name), errors: "rpc", run }];
  });
}

/** Which streams a path may go on with. */
const streamKinds: ReadonlyMap<string, StreamKind> = new Map([
  ["/process.Process/Start", "process"],
  ["/process.Process/Connect", "process"],
  ["/process.Process/StreamInput", "input"],
  ["/filesystem.Filesystem/WatchDir", "watch"],
]);

/**
 * Serves one operation that the worker has admitted. Whatever fails is answered. Throws `link/protocol` for a head that
 * the gateway may not send.
 */
export function serveOperation(activation: HostedActivation, exchange: Exchange): void {
  const context = new OperationContext(activation, exchange, readPosition(exchange.head.headers));
  const route = findRoute(exchange);
  const served = route === undefined ? Promise.reject(noSuchOperation(exchange)) : enter(context, route);
  served.catch((error: unknown) => answerError(context, route?.errors ?? "http", error));
}

async function enter(context: OperationContext, route: Route): Promise<void> {
  const { activation, exchange } = context;
  activation.enter(exchange, route.short);
  const { target, path } = exchange.head;
  const kind = streamKinds.get(path);
  if (kind !== undefined && context.position !== undefined && goOn(context, kind, context.position)) return;
  await (target.purpose === "service-port" ? servePort(context, target) : route.run(context));
}

/**
 * goes on with the stream of that name. False: there is none, and this is the first presentation, or a start whose
 * key can say whether it ran. Throws `StreamLost`.
 */
function goOn(
  { activation, exchange }: OperationContext,
  kind: StreamKind,
  position: StreamPosition,
): boolean {
  const stream = activation.streams.find(position.key);
  if (stream !== undefined) {
    if (stream.kind !== kind || !activation.streams.continue(stream, exchange, position))
      throw new StreamLost();
    return true;
  }
  const { path, headers } = exchange.head;
  const canBeAsked =
    path === "/process.Process/Start" && headerValue(headers, "idempotency-key") !== undefined;
  if (position.answerOffset !== undefined && !canBeAsked) throw new StreamLost();
  return false;
}

function findRoute({ head }: Exchange): Route | undefined {
  if (head.target.purpose === "service-port") return portRoute;
  const query = head.path.indexOf("?");
  return routes.get(`${head.method} ${query < 0 ? head.path : head.path.slice(0, query)}`);
}

function noSuchOperation({ head }: Exchange): EnvdError {
  return new EnvdError("not_found", `no operation ${head.method} at this path`);
}

function answerError(context: OperationContext, form: Route["errors"], error: unknown): void {
  const { answering: exchange, stream, activation } = context;
  if (error instanceof StreamLost) return answerStreamLost(context.exchange);
  if (error instanceof CallerGone) {
    stream?.answer.reset("caller gone");
    return exchange?.reset("caller gone");
  }
  stream?.answer.release(); // what follows is no stream's answer
  if (exchange === undefined || exchange.over) return;
  const translated = translate(error);
  if (translated === "lost") return answerLost(exchange, activation.facts.sandboxId);
  if (exchange.answered) return exchange.reset(translated.code);
  switch (form) {
    case "http":
      return answerHttpError(exchange, translated);
    case "rpc":
      return answerUnaryError(exchange, translated);
  }
}

/** The guest is gone: clients know this answer as a sandbox that is not running, and a broken transport as its death. */
function answerLost(exchange: Exchange, sandboxId: string): void {
  if (exchange.answered) exchange.reset("guest lost");
  else answerJson(exchange, 502, { sandboxId, message: "The sandbox was not found", code: 502 });
}

function answerStreamLost(exchange: Exchange): void {
  exchange.begin({ status: 503, headers: [], streamLost: true });
  exchange.end();
}
