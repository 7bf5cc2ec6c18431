// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

/**
 * the life of a signing key. `announced`: receivers are told of it, and it signs nothing yet; `signing`: the one
 * that signs; `retiring`: signs no more, and what it signed is still accepted; `removed` and `revoked`: in no bundle any
 * more, after its time or at somebody's word. It may be revoked before its time from each of the first three.
 */
export type SigningKeyState = "announced" | "signing" | "retiring" | "removed" | "revoked";

/** What an installation knows of one signing key. The private half is elsewhere. Times are milliseconds since 1970. */
export interface SigningKeyRecord {
  readonly kid: string;
  /** 32 raw bytes, base64url. */
  readonly publicKey: string;
  readonly state: SigningKeyState;
  /** Version of the first bundle that holds it. */
  readonly announcedIn: number;
  readonly announcedAtMs: number;
  readonly signingSinceMs: number | null;
  readonly retiringSinceMs: number | null;
  readonly endedAtMs: number | null;
  /** Version of the first bundle without it. */
  readonly endedIn: number | null;
  /** When somebody asked for its end before its time. */
  readonly revokeAskedAtMs: number | null;
}
