// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from "node:crypto";
import { type CallerCredential, type SandboxId, Secret } from "@space/model";

type FileSignature = Extract<CallerCredential, { readonly kind: "file-signature" }>;

/**
 * The access token of a sandbox is HMAC-SHA256 of its id under the installation's secret, in hexadecimal: the same
 * through every resume, and stored nowhere.
 */
export class AccessTokens {
  readonly #key: KeyObject;

  constructor(secret: Secret<Uint8Array>) {
    this.#key = createSecretKey(secret.reveal());
  }

  of(sandboxId: SandboxId): Secret<string> {
    return new Secret(createHmac("sha256", this.#key).update(sandboxId).digest("hex"));
  }

  matches(sandboxId: SandboxId, shown: Secret<string>): boolean {
    return sameText(shown.reveal(), this.of(sandboxId).reveal());
  }

  /** Whether the signature is of exactly this access, made with the sandbox's token. Says nothing about its expiry. */
  signed(sandboxId: SandboxId, shown: FileSignature): boolean {
    return sameText(shown.signature.reveal(), fileSignature(shown, this.of(sandboxId)));
  }
}

/** As E2B's clients sign: `v1_` and the unpadded base64 of SHA-256 over `path:operation:username:token[:expiry]`. */
export function fileSignature(
  of: Pick<FileSignature, "path" | "operation" | "username" | "expiresAtSeconds">,
  token: Secret<string>,
): string {
  const parts = [of.path, of.operation, of.username, token.reveal()];
  if (of.expiresAtSeconds !== undefined) parts.push(String(of.expiresAtSeconds));
  const digest = hash("sha256", parts.join(":"), "base64");
  return `v1_${digest.replaceAll("=", "")}`;
}

/** In constant time, whatever is shown: only its length, which is no secret, is told early. `expected` is ASCII. */
function sameText(shown: string, expected: string): boolean {
  const bytes = Buffer.from(shown);
  return bytes.length === expected.length && timingSafeEqual(bytes, Buffer.from(expected, "latin1"));
}
