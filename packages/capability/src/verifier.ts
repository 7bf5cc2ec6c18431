// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { hash } from "node:crypto";
import { type Brand, type CapabilityClaims, capabilityLimitBytes } from "@space/model";
import { capabilityKind } from "./claims.ts";
import { openToken, type TokenRefusal } from "./jws.ts";
import type { KeyRing } from "./key-ring.ts";
import { RecentMap } from "./recent-map.ts";

/** A capability whose form and signature are good; nothing is said about its time, presenter, access or identity. Made only by {@link CapabilityVerifier}. */
export type VerifiedCapability = Brand<{ readonly claims: CapabilityClaims }, "VerifiedCapability">;

export type CapabilityVerification =
  | { readonly kind: "verified"; readonly capability: VerifiedCapability }
  | { readonly kind: "refused"; readonly reason: TokenRefusal };

/** How many verified tokens are remembered. */
export const defaultMemoryLimit = 10_000;
export const greatestMemoryLimit = 100_000;

export interface VerifierOptions {
  readonly keys: KeyRing;
  /** Tokens remembered, 0 to {@link greatestMemoryLimit}; absent: {@link defaultMemoryLimit}. */
  readonly memoryLimit?: number;
}

/**
 * Checks form, key and signature of capabilities, and remembers that exact bytes passed (R-11). It trusts its key ring
 * and never throws for a token. The verdict is `admit`'s, on every request anew.
 */
export class CapabilityVerifier {
  #keys: KeyRing;
  readonly #passed: RecentMap<CapabilityVerification>;

  constructor(options: VerifierOptions) {
    this.#keys = options.keys;
    this.#passed = new RecentMap(checkedLimit(options.memoryLimit ?? defaultMemoryLimit));
  }

  /** form, key, signature. */
  verify(token: string): CapabilityVerification {
    // the size comes first, so that not even the digest is taken of more.
    if (token.length > capabilityLimitBytes) return { kind: "refused", reason: "form" };
    // the digest of the whole token, signature included.
    const digest = hash("sha256", token, "base64url");
    const passed = this.#passed.get(digest);
    if (passed !== undefined) return passed;
    const opened = openToken(capabilityKind, token, this.#keys.find);
    if (opened.kind === "refused") return opened;
    const capability = Object.freeze({ claims: opened.value }) as VerifiedCapability; // cast: this is where it is made
    const verified = Object.freeze({ kind: "verified", capability } as const);
    this.#passed.set(digest, verified);
    return verified;
  }

  /** from now on only these keys count, for remembered tokens too. */
  replaceKeys(keys: KeyRing): void {
    this.#keys = keys;
    this.#passed.clear();
  }
}

function checkedLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 0 && limit <= greatestMemoryLimit) return limit;
  throw new TypeError(`the memory limit must be 0 to ${greatestMemoryLimit}`);
}
