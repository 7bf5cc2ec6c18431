// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SigningKeyRecord } from "@space/model";
import type { ControlParts } from "./parts.ts";

/** the signing keys as an operator sees them. Nothing in it is secret. */
export interface KeyView {
  /** The oldest first. */
  readonly keys: readonly SigningKeyRecord[];
  readonly bundleVersion: number;
  /** Whether every receiver that holds a lease has that bundle. */
  readonly isDelivered: boolean;
}

/** rotation and revocation of signing keys at somebody's word. Who may say it is the composition's business. */
export class KeyAdministration {
  readonly #parts: Pick<ControlParts, "keys" | "rotation">;

  constructor(parts: Pick<ControlParts, "keys" | "rotation">) {
    this.#parts = parts;
  }

  view(): KeyView {
    const { keys, rotation } = this.#parts;
    return { keys: keys.records, bundleVersion: keys.bundle.version, isDelivered: rotation.isDelivered };
  }

  /** A new key takes over once every leased receiver holds it. Throws `root-key/absent` or `signing-key/limit`. */
  rotate(): Promise<SigningKeyRecord> {
    return this.#parts.rotation.rotate();
  }

  /** Ends a key before its time. Throws `signing-key/unknown`, `signing-key/state` or `root-key/absent`. */
  revoke(kid: string): Promise<SigningKeyRecord> {
    return this.#parts.rotation.revoke(kid);
  }
}
