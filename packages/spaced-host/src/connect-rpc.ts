// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { DescMessage, JsonObject, MessageShape } from "@bufbuild/protobuf";
import { decompress, EnvelopeReader, messageLimitBytes } from "./connect-envelope.ts";
import type { StreamKind } from "./continued-streams.ts";
import { EnvdError } from "./envd-error.ts";
import type { Exchange } from "./exchange.ts";
import { decodeMessage, encodeMessage, type MessageCodec } from "./message-codec.ts";
import type { OperationContext } from "./operation-context.ts";
import { RpcStream } from "./rpc-stream.ts";

/** How one method is served, whatever its kind. Rejects when the call has to be answered with an error. */
export type RpcMethod = (context: OperationContext) => Promise<void>;

interface MethodTypes<I extends DescMessage> {
  readonly input: I;
  readonly output: DescMessage;
}

/** A method with one request and one answer, given as protobuf's JSON. */
export function unary<I extends DescMessage>(
  types: MethodTypes<I>,
  run: (request: MessageShape<I>, context: OperationContext) => Promise<JsonObject>,
): RpcMethod {
  return async (context) => {
    const codec = codecOf(context, /^application\/(json|proto)$/);
    if (codec === undefined) return refuseContentType(context, ["application/json", "application/proto"]);
    const { exchange, activation } = context;
    const { requestMemory } = activation;
    const bytes = await exchange.body.collect(messageLimitBytes);
    requestMemory.take(bytes.length);
    try {
      const plain = await decompress(bytes, context.header("content-encoding"));
      const request = decodeMessage(types.input, codec, plain);
      const answer = await withinDeadline(context, run(request, context));
      exchange.answer(200, ...body(`application/${codec}`, encodeMessage(types.output, codec, answer)));
    } finally {
      requestMemory.give(bytes.length);
    }
  };
}

/** A method with one request and a stream of answers. `run` may resolve while the stream goes on. */
export function serverStream<I extends DescMessage>(
  types: MethodTypes<I>,
  kind: StreamKind,
  run: (request: MessageShape<I>, stream: RpcStream, context: OperationContext) => Promise<void>,
): RpcMethod {
  return streaming(types, kind, async (requests, stream, context) => {
    const request = await requests();
    if (request === undefined) throw new EnvdError("invalid_argument", "the request has no message");
    await run(request, stream, context);
  });
}

/** A method with a stream of requests and one answer. `requests` gives undefined at the end. */
export function clientStream<I extends DescMessage>(
  types: MethodTypes<I>,
  kind: StreamKind,
  run: (
    requests: () => Promise<MessageShape<I> | undefined>,
    context: OperationContext,
  ) => Promise<JsonObject>,
): RpcMethod {
  return streaming(types, kind, async (requests, stream, context) => {
    stream.sendMessage(encodeMessage(types.output, stream.codec, await run(requests, context)));
    stream.end();
  });
}

function streaming<I extends DescMessage>(
  types: MethodTypes<I>,
  kind: StreamKind,
  run: (
    requests: () => Promise<MessageShape<I> | undefined>,
    stream: RpcStream,
    context: OperationContext,
  ) => Promise<void>,
): RpcMethod {
  return async (context) => {
    const codec = codecOf(context, /^application\/connect\+(json|proto)$/);
    if (codec === undefined) {
      return refuseContentType(context, ["application/connect+json", "application/connect+proto"]);
    }
    context.openStream(kind, codec);
    const stream = new RpcStream(context.sink, codec);
    if (context.stream !== undefined) context.stream.rpc = stream;
    const reader = new EnvelopeReader(() => context.nextChunk());
    const requests = async (): Promise<MessageShape<I> | undefined> => {
      const next = await reader.next();
      if (next === undefined) return undefined;
      const encoding = next.compressed ? context.header("connect-content-encoding") : undefined;
      return decodeMessage(types.input, codec, await decompress(next.message, encoding));
    };
    try {
      await run(requests, stream, context);
    } catch (error) {
      if (!(error instanceof EnvdError)) throw error;
      stream.fail(error);
    }
  };
}

/** An error as the answer of a unary call. */
export function answerUnaryError(exchange: Exchange, { code, message, status }: EnvdError): void {
  exchange.answer(status, ...body("application/json", Buffer.from(JSON.stringify({ code, message }))));
}

function codecOf(context: OperationContext, form: RegExp): MessageCodec | undefined {
  const type = (context.header("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const name = form.exec(type)?.[1];
  return name === "json" || name === "proto" ? name : undefined;
}

function refuseContentType(context: OperationContext, accepted: readonly string[]): void {
  context.exchange.answer(415, ["accept-post", accepted.join(", "), "content-length", "0"]);
}

function body(type: string, bytes: Buffer): [string[], Buffer] {
  return [["content-type", type, "content-length", bytes.length.toString()], bytes];
}

function withinDeadline<T>(context: OperationContext, work: Promise<T>): Promise<T> {
  const limitMs = context.timeoutMs();
  if (limitMs === undefined) return work;
  return new Promise((resolve, reject) => {
    const cancel = context.activation.ports.clock.after(limitMs, () =>
      reject(new EnvdError("deadline_exceeded", "the request's time limit has passed")),
    );
    work.then(resolve, reject).finally(cancel);
  });
}
