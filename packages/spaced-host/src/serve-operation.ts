// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { answerUnaryError, type RpcMethod } from "./connect-rpc.ts";
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

/** Serves one operation that the worker has admitted. Whatever fails is answered; nothing is thrown. */
export function serveOperation(activation: HostedActivation, exchange: Exchange): void {
  const context = new OperationContext(activation, exchange);
  const route = findRoute(exchange);
  const served = route === undefined ? Promise.reject(noSuchOperation(exchange)) : enter(context, route);
  served.catch((error: unknown) => answerError(context, route?.errors ?? "http", error));
}

async function enter(context: OperationContext, route: Route): Promise<void> {
  const { activation, exchange } = context;
  activation.enter(exchange, route.short);
  const { target } = exchange.head;
  await (target.purpose === "service-port" ? servePort(context, target) : route.run(context));
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
  const { exchange, activation } = context;
  if (error instanceof CallerGone) return exchange.reset("caller gone");
  if (exchange.over) return;
  const translated = translate(error);
  if (translated === "lost") return answerLost(exchange, activation.facts.sandboxId);
  if (exchange.answered) return exchange.reset(translated.code);
  switch (form) {
    case "http":
      return answerHttpError(exchange, translated);
    case "rpc":
      return answerUnaryError(context, translated);
  }
}

/** The guest is gone: clients know this answer as a sandbox that is not running, and a broken transport as its death. */
function answerLost(exchange: Exchange, sandboxId: string): void {
  if (exchange.answered) exchange.reset("guest lost");
  else answerJson(exchange, 502, { sandboxId, message: "The sandbox was not found", code: 502 });
}
