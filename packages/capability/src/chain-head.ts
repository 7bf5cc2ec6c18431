// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type Digest, members, parseDigest, parseSandboxId, type SandboxId, SpaceError } from "@space/model";
import { parseSeconds } from "./fields.ts";
import { type KeyHolder, openToken, sealToken, type TokenKind } from "./jws.ts";
import type { SigningKey } from "./keys.ts";

/**
 * the control plane's word on where a sandbox's identity chain ends. Everything before hangs on it by digests, so
 * it vouches for links whose own signing key is trusted no more.
 */
export interface ChainHead {
  readonly sandboxId: SandboxId;
  /** The newest certificate. */
  readonly certificate: Digest;
  /** The newest snapshot's manifest; null when there is none. */
  readonly manifest: Digest | null;
  readonly issuedAtSeconds: number;
}

const headKind: TokenKind<ChainHead> = { typ: "space-chain-head+jwt", limitBytes: 2048, read: readHead };

/** Of heads that the control plane's own store names. The control plane's alone. Throws `input/invalid`. */
export function signChainHead(key: SigningKey, head: ChainHead): string {
  const { sandboxId, certificate, manifest, issuedAtSeconds } = head;
  return sealToken(headKind, key, { sandboxId, certificate, manifest, iat: issuedAtSeconds }).token;
}

/** Checks form, key and signature. Throws `chain/refused`. */
export function verifyChainHead(token: string, keys: KeyHolder): ChainHead {
  const opened = openToken(headKind, token, keys.find);
  if (opened.kind === "opened") return opened.value;
  throw new SpaceError("chain/refused", { link: "head", problem: opened.reason });
}

function readHead(payload: unknown): ChainHead {
  const head = members(payload, "head", ["sandboxId", "certificate", "manifest", "iat"]);
  return Object.freeze({
    sandboxId: parseSandboxId(head["sandboxId"]),
    certificate: parseDigest(head["certificate"]),
    manifest: head["manifest"] === null ? null : parseDigest(head["manifest"]),
    issuedAtSeconds: parseSeconds(head["iat"], "iat"),
  });
}
