// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { EnvdError } from "./envd-error.ts";

/** How the messages of one call are written. Errors and ends of streams are JSON in both. */
export type MessageCodec = "json" | "proto";

/** Reads a request. Unknown fields are skipped, as a newer client expects. Throws `invalid_argument`. */
export function decodeMessage<Desc extends DescMessage>(
  schema: Desc,
  codec: MessageCodec,
  bytes: Buffer,
): MessageShape<Desc> {
  try {
    if (codec === "proto") return fromBinary(schema, bytes);
    const text = bytes.length === 0 ? "{}" : bytes.toString("utf8");
    const value = JSON.parse(text) as JsonValue; // cast: what JSON.parse returns is just that
    return fromJson(schema, value, { ignoreUnknownFields: true });
  } catch (cause) {
    throw new EnvdError("invalid_argument", `the request is not a valid ${schema.typeName}`, { cause });
  }
}

/**
 * Writes an answer. Answers are made as protobuf's JSON by hand, because nearly every caller speaks JSON; the binary
 * form is derived from it.
 */
export function encodeMessage(schema: DescMessage, codec: MessageCodec, value: JsonObject): Buffer {
  if (codec === "json") return Buffer.from(JSON.stringify(value));
  return Buffer.from(toBinary(schema, fromJson(schema, value)));
}
