// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type FeedEntry,
  type FeedItem,
  members,
  parseDigest,
  parseSandboxId,
  SpaceError,
} from "@space/model";
import { parseInteger, parseNullableDigest, parseText } from "./worker-control-codec.ts";

/** One item as told: `seq` counts within one stream, and is what the receiver acknowledges. */
export interface ToldItem {
  readonly seq: number;
  readonly item: FeedItem;
}

export function toldToJson({ seq, item }: ToldItem): unknown {
  return { seq, position: item.position, entry: item.entry };
}

/** Reads what the control plane tells, strictly. It says nothing about who signed it. Throws `input/invalid`. */
export function parseTold(value: unknown): ToldItem {
  const { seq, position, entry } = members(value, "told", ["seq", "position", "entry"]);
  return {
    seq: parseCount(seq, "seq"),
    item: { position: position === null ? null : parseCount(position, "position"), entry: parseEntry(entry) },
  };
}

function parseEntry(value: unknown): FeedEntry {
  switch (kindOf(value)) {
    case "install": {
      const { certificate } = members(value, "entry", ["kind", "certificate"]);
      return { kind: "install", certificate: parseText(certificate, "certificate") };
    }
    case "retire": {
      const { retirement, keepFrozen } = members(value, "entry", ["kind", "retirement", "keepFrozen"]);
      return {
        kind: "retire",
        retirement: parseText(retirement, "retirement"),
        keepFrozen: parseNullableDigest(keepFrozen),
      };
    }
    case "discard": {
      const { sandboxId, manifest } = members(value, "entry", ["kind", "sandboxId", "manifest"]);
      return { kind: "discard", sandboxId: parseSandboxId(sandboxId), manifest: parseDigest(manifest) };
    }
    case "keys": {
      const { bundle } = members(value, "entry", ["kind", "bundle"]);
      return { kind: "keys", bundle: parseText(bundle, "bundle") };
    }
    case "lease": {
      const { grant } = members(value, "entry", ["kind", "grant"]);
      return { kind: "lease", grant: parseText(grant, "grant") };
    }
    default:
      throw new SpaceError("input/invalid", { field: "kind", problem: "is not known" });
  }
}

function kindOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "kind" in value ? value.kind : undefined;
}

/** What the receiver answers: done, or refused with the error's public part. */
export interface Acknowledgement {
  readonly seq: number;
  readonly error: unknown;
}

export function acknowledgementToJson({ seq, error }: Acknowledgement): unknown {
  return error === undefined ? { ack: seq } : { ack: seq, error };
}

/** Throws `input/invalid`. */
export function parseAcknowledgement(value: unknown): Acknowledgement {
  const { ack, error } = members(value, "acknowledgement", ["ack"], ["error"]);
  return { seq: parseCount(ack, "ack"), error };
}

function parseCount(value: unknown, field: string): number {
  return parseInteger(value, field, 1, Number.MAX_SAFE_INTEGER);
}
