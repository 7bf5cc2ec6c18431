// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { create, type JsonObject, toBinary } from "@bufbuild/protobuf";
import type { ProcessExit } from "@space/spaced-guest";
import { ProcessEventSchema, StartResponseSchema } from "@space/wire/envd";
import { envelope, envelopeHeaderBytes, writeEnvelopeHeader } from "./connect-envelope.ts";
import { encodeMessage, type MessageCodec } from "./message-codec.ts";

/** Where a chunk of output came from. */
export type OutputKind = "stdout" | "stderr" | "pty";

const dataSuffix = '"}}}';
const dataPrefix: Readonly<Record<OutputKind, string>> = {
  stdout: '{"event":{"data":{"stdout":"',
  stderr: '{"event":{"data":{"stderr":"',
  pty: '{"event":{"data":{"pty":"',
};

/** `StartResponse` and `ConnectResponse` are the same on the wire, so one encoding serves both. */
function framed(codec: MessageCodec, event: JsonObject): Buffer {
  return envelope(encodeMessage(StartResponseSchema, codec, { event }));
}

export function startEvent(codec: MessageCodec, pid: number): Buffer {
  return framed(codec, { start: { pid } });
}

export function keepaliveEvent(codec: MessageCodec): Buffer {
  return framed(codec, { keepalive: {} });
}

/** A chunk of output in its envelope. The hottest encoding of all, so the JSON is put together by hand. */
export function dataEvent(codec: MessageCodec, kind: OutputKind, chunk: Buffer): Buffer {
  if (codec === "proto") {
    const data = { output: { case: kind, value: chunk } };
    const event = create(ProcessEventSchema, { event: { case: "data", value: data } });
    return envelope(toBinary(StartResponseSchema, create(StartResponseSchema, { event })));
  }
  const prefix = dataPrefix[kind];
  const base64 = chunk.toString("base64");
  const length = prefix.length + base64.length + dataSuffix.length;
  const bytes = Buffer.allocUnsafe(envelopeHeaderBytes + length);
  writeEnvelopeHeader(bytes, 0, length);
  let at = envelopeHeaderBytes;
  at += bytes.write(prefix, at, "latin1");
  at += bytes.write(base64, at, "latin1");
  bytes.write(dataSuffix, at, "latin1");
  return bytes;
}

/** Linux's signals in the words that clients know from E2B's agent. */
const signalWords: Readonly<Record<number, string>> = {
  1: "hangup",
  2: "interrupt",
  3: "quit",
  4: "illegal instruction",
  5: "trace/breakpoint trap",
  6: "aborted",
  7: "bus error",
  8: "floating point exception",
  9: "killed",
  10: "user defined signal 1",
  11: "segmentation fault",
  12: "user defined signal 2",
  13: "broken pipe",
  14: "alarm clock",
  15: "terminated",
};

/** How a process ended: the fields of `EndEvent` as JSON, zero values left out. */
export function endFields(exit: ProcessExit): JsonObject {
  if (exit.kind === "signalled") {
    const status = `signal: ${signalWords[exit.signal] ?? `signal ${exit.signal}`}`;
    return { exitCode: -1, status, error: status };
  }
  const status = `exit status ${exit.code}`;
  if (exit.code === 0) return { exited: true, status };
  return { exitCode: exit.code, exited: true, status, error: status };
}

export function endEvent(codec: MessageCodec, exit: ProcessExit): Buffer {
  return framed(codec, { end: endFields(exit) });
}
