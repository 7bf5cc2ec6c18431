// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import type { Duplex } from "node:stream";
import { GuestError } from "@space/spaced-guest";
import { type OperationTarget, passableHeaders } from "@space/wire";
import { EnvdError } from "./envd-error.ts";
import type { Exchange } from "./exchange.ts";
import type { OperationContext } from "./operation-context.ts";
import { relayBytes, sendBody } from "./raw-relay.ts";

export type PortTarget = Extract<OperationTarget, { purpose: "service-port" }>;

/** Longest head that a server in the guest may answer with. */
const answerHeadLimitBytes = 64 * 1024;
/** Dealt with on the way here. */
const dropped: ReadonlySet<string> = new Set(["expect"]);

/**
 * An operation on a port of the user's own server. Each gets a connection of its own, so that none outlives the identity
 * it was opened under.
 */
export async function servePort(context: OperationContext, target: PortTarget): Promise<void> {
  const { activation, exchange } = context;
  exchange.onOver(activation.enterDial());
  const socket = await dial(context, target.port);
  if (socket === undefined) return;
  exchange.onOver(() => {
    if (exchange.gone) socket.destroy();
  });
  switch (target.protocol) {
    case "tcp":
    case "h2c":
      exchange.begin({ status: 200, headers: [] });
      return relayBytes(exchange, socket);
    case "http":
    case "websocket":
      return forwardHttp(context, socket, target);
  }
}

/** A connection to the port; undefined when nothing listens there, which has then been answered. */
async function dial({ activation, exchange }: OperationContext, port: number): Promise<Duplex | undefined> {
  const connection = await activation.pool.detach();
  try {
    return await connection.dial(port);
  } catch (error) {
    connection.destroy();
    if (!(error instanceof GuestError)) throw error;
    answerPortClosed(exchange, activation.facts.sandboxId, port);
    return undefined;
  }
}

function answerPortClosed(exchange: Exchange, sandboxId: string, port: number): void {
  const message = "The sandbox is running but port is not open";
  const body = Buffer.from(JSON.stringify({ sandboxId, message, port, code: 502 }));
  const headers = ["content-type", "application/json", "content-length", body.length.toString()];
  exchange.begin({ status: 502, headers, portClosed: true });
  exchange.write(body);
  exchange.end();
}

function forwardHttp(
  context: OperationContext,
  socket: Duplex,
  { port, protocol }: PortTarget,
): Promise<void> {
  const { exchange } = context;
  // What the capability names decides; the header is of one hop, and does not come here.
  const upgrading = protocol === "websocket";
  return new Promise((resolve, reject) => {
    const broken = (cause: unknown): void => {
      socket.destroy();
      if (exchange.answered) exchange.reset("guest closed");
      else if (!exchange.over) {
        reject(
          new EnvdError("unavailable", "the server in the sandbox broke the exchange", {
            status: 502,
            cause,
          }),
        );
      }
    };
    const request = httpRequest(requestOptions(context, socket, { port, upgrading }));
    request.on("error", broken);
    request.once("socket", () => socket.resume()); // a dialled connection comes paused
    request.on("response", (response) => answerWith(exchange, response, socket, broken));
    request.on("upgrade", (response, upgraded, first) => {
      // A server that switches protocols unasked is refused.
      if (upgrading) answerUpgrade(exchange, response, upgraded, first);
      else broken(undefined);
    });
    socket.once("close", () => {
      if (!exchange.answered) broken(undefined);
      resolve();
    });
    beginRequest(exchange, request, upgrading);
  });
}

function beginRequest(exchange: Exchange, request: ClientRequest, upgrading: boolean): void {
  if (upgrading) request.end();
  else sendBody(exchange, request).catch(() => request.destroy()); // the caller has gone, or has his answer
}

function requestOptions(
  context: OperationContext,
  socket: Duplex,
  { port, upgrading }: { readonly port: number; readonly upgrading: boolean },
): RequestOptions {
  const { head, body } = context.exchange;
  const { method, path, headers: received } = head;
  const headers = passableHeaders(received, { drop: dropped });
  if (upgrading) headers.push("connection", "Upgrade", "upgrade", "websocket");
  else headers.push("connection", "close");
  if (context.header("host") === undefined) headers.push("host", `localhost:${port}`);
  const unknownLength = context.header("content-length") === undefined && !body.finished;
  if (unknownLength && !upgrading) headers.push("transfer-encoding", "chunked");
  return {
    method,
    path,
    headers,
    createConnection: () => socket,
    maxHeaderSize: answerHeadLimitBytes,
    setHost: false,
  };
}

function answerUpgrade(exchange: Exchange, response: IncomingMessage, upgraded: Duplex, first: Buffer): void {
  exchange.begin({ status: 101, headers: passableHeaders(response.rawHeaders) });
  if (first.length > 0) upgraded.unshift(first);
  void relayBytes(exchange, upgraded);
}

function answerWith(
  exchange: Exchange,
  response: IncomingMessage,
  socket: Duplex,
  broken: (cause: unknown) => void,
): void {
  response.on("error", broken);
  const status = response.statusCode ?? 0;
  if (status < 200 || status > 599) return broken(undefined);
  exchange.begin({ status, headers: passableHeaders(response.rawHeaders) });
  exchange.listenForDrain(() => response.resume());
  response.on("data", (chunk: Buffer) => {
    if (!exchange.write(chunk)) response.pause();
  });
  response.on("end", () => {
    exchange.end();
    socket.destroy();
  });
}
