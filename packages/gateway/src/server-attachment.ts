// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { IncomingMessage, Server, ServerResponse } from "node:http";
import {
  type Http2SecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Ingress } from "./ingress.ts";
import type { GatewayLimits } from "./limits.ts";

/** High-water mark of client sockets: node's 16 KiB would pause and resume at every read (performance 2d). */
const clientHighWaterMark: number = 256 * 1024;
const sessionWindowBytes: number = 4 * 1024 * 1024;
const streamWindowBytes: number = 1024 * 1024;
/** How often node looks for heads that take too long. */
const slowHeadCheckMs = 5000;
const keepAliveProbeMs = 60_000;
const sessionMemoryMb = 256;

/** What `http.createServer` must be given, since it cannot be set afterwards. */
export function plainServerOptions(limits: GatewayLimits) {
  return {
    maxHeaderSize: limits.headerBytes,
    highWaterMark: clientHighWaterMark,
    noDelay: true,
    connectionsCheckingInterval: slowHeadCheckMs,
  } as const;
}

/** What `http2.createSecureServer` must be given, besides the certificate. */
export function secureServerOptions(limits: GatewayLimits) {
  return {
    allowHTTP1: true,
    ...plainServerOptions(limits),
    maxSessionMemory: sessionMemoryMb,
    settings: {
      initialWindowSize: streamWindowBytes,
      maxConcurrentStreams: limits.sessionStreams,
      maxHeaderListSize: limits.headerBytes,
    },
  } as const;
}

/** Wires a server's events to the ingress and sets its time limits. */
export function attachServer(
  server: Server | Http2SecureServer,
  ingress: Ingress,
  limits: GatewayLimits,
): void {
  setTimeLimits(server, limits);
  if (!(server instanceof Server)) {
    server.on("session", (session: ServerHttp2Session) => session.setLocalWindowSize(sessionWindowBytes));
  }
  const serve = (request: unknown, response: unknown, expects: boolean): void => {
    if (request instanceof IncomingMessage && response instanceof ServerResponse)
      ingress.serve({ version: 1, request, response }, expects);
    else if (request instanceof Http2ServerRequest && response instanceof Http2ServerResponse) {
      request.on("error", ignore);
      ingress.serve({ version: 2, request, response }, expects);
    }
  };
  server.on("request", (request: unknown, response: unknown) => serve(request, response, false));
  server.on("checkContinue", (request: unknown, response: unknown) => serve(request, response, true));
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, first: Buffer) => {
    socket.on("error", ignore);
    // node's own time limits end with the upgrade: an idle WebSocket may live for hours (incident 11), a dead one not.
    if (socket instanceof Socket) socket.setKeepAlive(true, keepAliveProbeMs);
    ingress.upgrade(request, socket, first);
  });
  server.on("connect", (_request: unknown, target: unknown) => refuseConnect(target));
  server.on("clientError", refuseBroken);
}

/** A client's broken connection shows as the end of its operation. */
function ignore(): void {
  // Nothing more to do.
}

/** Times for both kinds of server, on the properties that node reads at each connection. */
function setTimeLimits(server: Server | Http2SecureServer, limits: GatewayLimits): void {
  Object.assign(server, {
    // The head has its own limit; a body or an answer may take as long as bytes keep flowing.
    requestTimeout: 0,
    headersTimeout: limits.headWaitMs,
    keepAliveTimeout: limits.keepAliveMs,
    timeout: limits.idleMs,
    maxHeadersCount: 0, // node would drop headers silently; the ingress counts them instead
    shouldUpgradeCallback: isWebSocket,
  });
}

function isWebSocket(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === "websocket";
}

/** No tunnels: over HTTP/1 the target is a socket, over HTTP/2 a response. */
function refuseConnect(target: unknown): void {
  if (target instanceof Http2ServerResponse) {
    target.writeHead(405);
    target.end();
  } else if (target instanceof Socket) {
    target.on("error", ignore);
    target.write("HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    target.destroySoon();
  }
}

const statusOfParseError: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

/** A request that could not be read. Once anything was answered on the connection, words would be taken for another answer. */
function refuseBroken(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (
    !(socket instanceof Socket) ||
    !socket.writable ||
    socket.bytesWritten > 0 ||
    error.code === "ECONNRESET"
  ) {
    socket.destroy();
    return;
  }
  const status = statusOfParseError[error.code ?? ""] ?? "400 Bad Request";
  socket.write(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  socket.destroySoon();
}
