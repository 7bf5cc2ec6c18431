// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type AuditCheckpoint, members, parseDigest } from "@space/model";
import { parseCount, parseName, parseSeconds } from "./fields.ts";
import { type KeyFinder, type OpenedToken, openToken, sealToken, type TokenKind } from "./jws.ts";
import type { SigningKey } from "./keys.ts";

const checkpointKind: TokenKind<AuditCheckpoint> = {
  typ: "space-audit-checkpoint+jws",
  limitBytes: 2048,
  read: readCheckpoint,
};

/** Signs the state of an audit log's chain. Throws `input/invalid`. */
export function signAuditCheckpoint(key: SigningKey, checkpoint: AuditCheckpoint): string {
  const { log, process, count, head, issuedAtSeconds } = checkpoint;
  return sealToken(checkpointKind, key, { log, process, count, head, iat: issuedAtSeconds }).token;
}

/** Form, key and signature of a checkpoint. Never throws for a token. */
export function openAuditCheckpoint(token: string, find: KeyFinder): OpenedToken<AuditCheckpoint> {
  return openToken(checkpointKind, token, find);
}

function readCheckpoint(payload: unknown): AuditCheckpoint {
  const { log, process, count, head, iat } = members(payload, "checkpoint", [
    "log",
    "process",
    "count",
    "head",
    "iat",
  ]);
  return Object.freeze({
    log: parseName(log, "log"),
    process: parseName(process, "process"),
    count: parseCount(count, "count", 1),
    head: parseDigest(head),
    issuedAtSeconds: parseSeconds(iat, "iat"),
  });
}
