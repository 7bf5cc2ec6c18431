// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "./errors.ts";
import { members } from "./identity.ts";
import type { Random } from "./ports/random.ts";

/**
 * What binds a worker's identity to its store. At each connection the worker shows the token that was agreed on at the
 * last one, and the next, which its store holds already: so a copy of the store, or one that was put back, shows a token
 * that another connection has replaced, and is not that worker any more.
 */
export interface StoreSuccession {
  /** Agreed on at the last connection; null: this store was never connected. */
  readonly held: string | null;
  readonly next: string;
}

/** 128 random bits. */
export function newSuccessionToken(random: Random): string {
  return Buffer.from(random.bytes(16)).toString("base64url");
}

/** Throws `input/invalid`. */
export function parseStoreSuccession(value: unknown): StoreSuccession {
  const { held, next } = members(value, "store", ["held", "next"]);
  return Object.freeze({ held: held === null ? null : parseToken(held), next: parseToken(next) });
}

function parseToken(value: unknown): string {
  if (typeof value === "string" && /^[A-Za-z0-9_-]{22}$/.test(value)) return value;
  throw new SpaceError("input/invalid", { field: "store", problem: "is not of its form" });
}
