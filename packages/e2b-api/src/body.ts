// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";

import type { Clock } from "@space/model";

import { type Answer, type ApiResponse, errorAnswer } from "./answer.ts";
import type { ApiLimits } from "./limits.ts";

/** The request object of either version of HTTP. */
export type ApiRequest = IncomingMessage | Http2ServerRequest;

export interface BodyPorts {
  readonly limits: ApiLimits;
  readonly clock: Clock;
}

export type BodyOutcome =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "refused"; readonly answer: Answer }
  /** The client went away; nobody is left to answer. */
  | { readonly kind: "gone" };

/**
 * Reads a JSON body, with or without a length, and whatever its `Content-Length` claims. No body reads as `{}`. Refused
 * are another media type or coding, too many bytes, too slow ones, broken UTF-8 and broken JSON.
 */
export async function readJson(request: ApiRequest, ports: BodyPorts): Promise<BodyOutcome> {
  const received = await receive(request, ports);
  switch (received.kind) {
    case "gone":
      return received;
    case "too-large":
      return refused(413, `the body is larger than ${ports.limits.bodyBytes} bytes`);
    case "too-slow":
      return refused(408, "the body took too long to arrive");
    case "whole":
      return received.bytes.length === 0 ? { kind: "json", value: {} } : parse(request, received.bytes);
  }
}

function parse(request: ApiRequest, bytes: Buffer): BodyOutcome {
  const type = request.headers["content-type"];
  if (type !== undefined && !/^application\/json\s*(?:;|$)/i.test(type)) {
    return refused(415, "the body must be application/json");
  }
  const coding = request.headers["content-encoding"];
  if (coding !== undefined && coding !== "identity") return refused(415, "the body must not be compressed");
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { kind: "json", value: JSON.parse(text) };
  } catch {
    return refused(400, "the body is not valid JSON in UTF-8"); // the parser's own words would quote the body
  }
}

function refused(status: number, message: string): BodyOutcome {
  return { kind: "refused", answer: errorAnswer(status, message) };
}

type Received =
  | { readonly kind: "whole"; readonly bytes: Buffer }
  | { readonly kind: "too-large" }
  | { readonly kind: "too-slow" }
  | { readonly kind: "gone" };

/** Collects the body. One that is too large is still read up to `drainBytes`, so that its sender reads the answer. */
function receive(request: ApiRequest, { limits, clock }: BodyPorts): Promise<Received> {
  const { promise, resolve } = Promise.withResolvers<Received>();
  let chunks: Buffer[] = [];
  let sizeBytes = 0;
  const onData = (chunk: Buffer): void => {
    sizeBytes += chunk.length;
    if (sizeBytes <= limits.bodyBytes) chunks.push(chunk);
    else chunks = [];
    if (sizeBytes > limits.drainBytes) settle({ kind: "too-large" });
  };
  const onEnd = (): void =>
    settle(
      sizeBytes > limits.bodyBytes ? { kind: "too-large" } : { kind: "whole", bytes: Buffer.concat(chunks) },
    );
  const onClose = (): void => settle({ kind: "gone" });
  const cancel = clock.after(limits.bodyMs, () => settle({ kind: "too-slow" }));
  const settle = (received: Received): void => {
    cancel();
    request.off("data", onData).off("end", onEnd).off("close", onClose);
    request.pause();
    resolve(received);
  };
  request.on("error", ignore);
  request.on("data", onData).on("end", onEnd).on("close", onClose);
  return promise;
}

/**
 * Ends what is left of a request's body once its answer is on the way: reads and drops a bounded rest, and cuts off a
 * client that goes on sending.
 */
export function dropRest(request: ApiRequest, response: ApiResponse, { limits, clock }: BodyPorts): void {
  if (request.readableEnded || request.destroyed) return;
  let sizeBytes = 0;
  const cut = (): void => {
    if ("stream" in request && request.httpVersionMajor >= 2) request.stream.close();
    else request.socket.destroy();
  };
  const cancel = clock.after(limits.bodyMs, cut);
  request.on("error", ignore);
  request.on("data", (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > limits.drainBytes && response.writableEnded) cut();
  });
  request.once("end", cancel).once("close", cancel);
  request.resume();
}

/** An error on a request is always followed by `close`, which is handled. */
function ignore(): void {}
