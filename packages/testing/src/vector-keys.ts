// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { SigningKey } from "@space/capability";
import { fixedKey, headerText, signParts } from "./fixed-keys.ts";

/** Each kind of signed statement, by its `typ`. */
export const typeOf = {
  capability: "space-cap+jwt",
  certificate: "space-exec-cert+jwt",
  origin: "space-origin+jwt",
  handOver: "space-hand-over+jwt",
  retirement: "space-retire+jwt",
  bundle: "space-key-bundle+jwt",
  manifest: "space-manifest+jws",
  countersigned: "space-countersigned-manifest+jws",
} as const;
export type StatementKind = keyof typeof typeOf;

export interface TokenVector {
  readonly name: string;
  readonly rule: string;
  readonly kind: StatementKind;
  readonly token: string;
  /** `verified`, or why it is refused. */
  readonly expect: "verified" | "form" | "key" | "signature" | "older version" | "repeated key";
  /** Of a bundle: the lowest version that the receiver still takes. */
  readonly minVersion?: number;
}

export const root: SigningKey = fixedKey("root");
export const signer: SigningKey = fixedKey("signer");
export const successor: SigningKey = fixedKey("successor");
export const execution: SigningKey = fixedKey("execution");
export const stranger: SigningKey = fixedKey("stranger");

export const text = (value: unknown): string => JSON.stringify(value);
export const seal = (kind: StatementKind, key: SigningKey, payload: unknown): string =>
  signParts(key, headerText(key, typeOf[kind]), text(payload));
