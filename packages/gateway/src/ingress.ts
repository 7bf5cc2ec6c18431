// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Duplex } from "node:stream";
import { type SandboxId, unreachable } from "@space/model";
import { agentPort } from "@space/wire";
import type { ApiHandler } from "./api-handler.ts";
import type { OperationRequest } from "./attempt.ts";
import { type ClientResponse, http1Response, http2Response } from "./client-response.ts";
import type { Destination, Destinations } from "./destination.ts";
import { HttpCaller } from "./http-caller.ts";
import type { GatewayLimits } from "./limits.ts";
import { Operation } from "./operation.ts";
import type { OperationCore } from "./operation-core.ts";
import { preflightHeaders } from "./preflight.ts";
import { type Refusal, type RefusedRequest, refusalAnswer } from "./refusal.ts";
import { type BodySource, RequestBody } from "./request-body.ts";
import { type RequestHead, readRequestHead } from "./request-head.ts";
import { readSandboxRequest } from "./sandbox-request.ts";
import { SocketCaller } from "./socket-caller.ts";

export interface IngressPorts {
  readonly destinations: Destinations;
  readonly limits: GatewayLimits;
  readonly api: ApiHandler;
}

/** One client request as node gives it, of either HTTP version. */
export type ClientExchange =
  | { readonly version: 1; readonly request: IncomingMessage; readonly response: ServerResponse }
  | { readonly version: 2; readonly request: Http2ServerRequest; readonly response: Http2ServerResponse };

const nowhere: RefusedRequest = { sandbox: "", port: 0, headers: [] };

type Read =
  | { readonly kind: "api" }
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly about: RefusedRequest }
  | {
      readonly kind: "sandbox";
      readonly sandboxId: SandboxId;
      readonly port: number;
      readonly head: RequestHead;
    };

/** Tells the requests to sandboxes from the rest, and starts each as an operation. */
export class Ingress {
  readonly #core: OperationCore;
  readonly #ports: IngressPorts;
  /** A WebSocket has no whole length that could be too large. */
  readonly #socketLimits: GatewayLimits;

  constructor(core: OperationCore, ports: IngressPorts) {
    this.#core = core;
    this.#ports = ports;
    this.#socketLimits = { ...ports.limits, bodyBytes: Number.POSITIVE_INFINITY };
  }

  /** `expects`: the caller waits for a 100 before it sends its body. */
  serve(exchange: ClientExchange, expects: boolean): void {
    const { request, response } = exchange;
    const read = this.#read(request.rawHeaders);
    switch (read.kind) {
      case "api":
        if (expects) response.writeContinue();
        return this.#ports.api(request, response);
      case "refused":
        return this.#refuseAtOnce(exchange, read.refusal, read.about);
      case "sandbox":
        return this.#serveSandbox(exchange, read, expects);
      default:
        return unreachable(read);
    }
  }

  /** A WebSocket handshake; `first` are bytes that came right after it. */
  upgrade(request: IncomingMessage, socket: Duplex, first: Buffer): void {
    const read = this.#read(request.rawHeaders);
    switch (read.kind) {
      case "api":
        return this.#socketCaller(nowhere, socket).refuse({ kind: "unknown-operation" });
      case "refused":
        return this.#socketCaller(read.about, socket).refuse(read.refusal);
      case "sandbox":
        return this.#upgradeToSandbox(read, request, { socket, first });
      default:
        return unreachable(read);
    }
  }

  #upgradeToSandbox(
    { sandboxId, port, head }: Extract<Read, { kind: "sandbox" }>,
    request: IncomingMessage,
    { socket, first }: { readonly socket: Duplex; readonly first: Buffer },
  ): void {
    const { counts, clock } = this.#core;
    const caller = this.#socketCaller({ sandbox: sandboxId, port, headers: head.headers }, socket);
    // Only GET can be a handshake; another method is refused as none is needed.
    const method = request.method === "GET" ? "GET" : "";
    const path = request.url ?? "";
    const outcome = readSandboxRequest({ sandboxId, port, head, method, path, protocol: "websocket" });
    counts.requests += 1;
    if (outcome.kind === "refused") {
      counts.refused += 1;
      return caller.refuse(outcome.refusal);
    }
    const source = { stream: socket, announcedBytes: undefined, wanted: ignore, cut: () => false };
    const body = new RequestBody(source, { limits: this.#socketLimits, clock });
    body.unshift(first);
    const operation = new Operation(outcome.request, body, caller, this.#core);
    socket.on("close", () => operation.abort());
    operation.start();
  }

  #socketCaller(about: RefusedRequest, socket: Duplex): SocketCaller {
    return new SocketCaller(about, {
      socket,
      clock: this.#core.clock,
      lingerMs: this.#ports.limits.lingerMs,
    });
  }

  #read(rawHeaders: readonly string[]): Read {
    const { limits, destinations } = this.#ports;
    const outcome = readRequestHead(rawHeaders, limits.headerLines);
    if (outcome.kind === "too-many")
      return { kind: "refused", refusal: { kind: "headers-too-large" }, about: nowhere };
    if (outcome.kind === "bad")
      return { kind: "refused", refusal: { kind: "bad-request", problem: outcome.problem }, about: nowhere };
    const { head } = outcome;
    return placed(destinations.of(head.host, { sandboxId: head.sandboxId, port: head.sandboxPort }), head);
  }

  #serveSandbox(
    exchange: ClientExchange,
    { sandboxId, port, head }: Extract<Read, { kind: "sandbox" }>,
    expects: boolean,
  ): void {
    const { request } = exchange;
    const about: RefusedRequest = { sandbox: sandboxId, port, headers: head.headers };
    if (port === agentPort && request.method === "OPTIONS") {
      const response = responseOf(exchange);
      response.head(204, preflightHeaders(request.rawHeaders));
      return response.end();
    }
    this.#core.counts.requests += 1;
    const outcome = readSandboxRequest({
      sandboxId,
      port,
      head,
      method: request.method ?? "",
      path: request.url ?? "",
      protocol: "http",
    });
    if (outcome.kind === "refused") return this.#refuseAtOnce(exchange, outcome.refusal, about);
    if ((head.contentLength ?? 0) > this.#ports.limits.bodyBytes)
      return this.#refuseAtOnce(exchange, { kind: "body-too-large" }, about);
    this.#operate(exchange, { request: outcome.request, about, head }, expects);
  }

  #operate(
    exchange: ClientExchange,
    read: { readonly request: OperationRequest; readonly about: RefusedRequest; readonly head: RequestHead },
    expects: boolean,
  ): void {
    const { clock } = this.#core;
    const { limits } = this.#ports;
    const body = new RequestBody(bodySource(exchange, read.head, expects), { limits, clock });
    const response = responseOf(exchange);
    const caller = new HttpCaller(read.about, read.request.method, {
      response,
      body,
      clock,
      lingerMs: limits.lingerMs,
    });
    const operation = new Operation(read.request, body, caller, this.#core);
    response.onClose(() => operation.abort());
    operation.start();
  }

  #refuseAtOnce(exchange: ClientExchange, refusal: Refusal, about: RefusedRequest): void {
    this.#core.counts.refused += 1;
    const { status, headers, body } = refusalAnswer(refusal, about);
    const response = responseOf(exchange);
    response.head(status, headers);
    response.end(body);
  }
}

function ignore(): void {
  // Nobody waits to be told.
}

function placed(destination: Destination, head: RequestHead): Read {
  const { headers } = head;
  switch (destination.kind) {
    case "api":
      return { kind: "api" };
    case "bad":
      return {
        kind: "refused",
        refusal: { kind: "bad-request", problem: destination.problem },
        about: nowhere,
      };
    case "no-sandbox":
      return {
        kind: "refused",
        refusal: { kind: "not-running" },
        about: { sandbox: destination.text, port: destination.port, headers },
      };
    case "sandbox":
      return { kind: "sandbox", sandboxId: destination.sandboxId, port: destination.port, head };
    default:
      return unreachable(destination);
  }
}

function responseOf(exchange: ClientExchange): ClientResponse {
  return exchange.version === 1 ? http1Response(exchange.response) : http2Response(exchange.response);
}

/** Undefined when the request has no body. */
function bodySource(exchange: ClientExchange, head: RequestHead, expects: boolean): BodySource | undefined {
  const { response } = exchange;
  const wanted = expects ? () => response.writeContinue() : ignore;
  const announcedBytes = head.contentLength;
  if (exchange.version === 1) {
    const { request } = exchange;
    if (!head.chunked && (announcedBytes ?? 0) === 0) return undefined;
    // node ends an HTTP/1 body only when it is whole.
    return { stream: request, announcedBytes, wanted, cut: () => !request.complete };
  }
  const { request } = exchange;
  if (request.stream.endAfterHeaders) return undefined;
  // node ends an HTTP/2 body also when the stream was reset. A caller that ends and then resets looks like
  // one that is done, unless it announced a length.
  return {
    stream: request,
    announcedBytes,
    wanted,
    cut: () => request.stream.aborted,
  };
}
