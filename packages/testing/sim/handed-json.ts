// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Stands in for the wire package's `json.ts`, in front of the real one (see loader.ts): between the simulated components of
// one process a command's value is copied as JSON would, and what travels is its number. In a world of real keys every
// value travels as its text.

import { isFixedForm } from "./remembered-identity.ts";
import { areKeysReal } from "./stand-in-crypto.ts";

interface RealModule {
  readonly encodeJson: (value: unknown) => string;
  readonly decodeJson: (text: string) => unknown;
}

const real: RealModule = await import(new URL("../../wire/src/json.ts", import.meta.url).href);

/** What a number begins with; no JSON does, and it is a command's text as far as the taps look at one. */
const mark = '{"rpc#';

/** Of a number. */
const digitsLimit = 15;

/** What is on its way. More than this many are not: the oldest was lost with its connection. */
const underWayLimit = 20_000;
const underWay = new Map<number, unknown>();
let newest = 0;

export function encodeJson(value: unknown): string {
  if (areKeysReal()) return real.encodeJson(value);
  newest += 1;
  underWay.set(newest, copied(value));
  if (underWay.size > underWayLimit) underWay.delete(newest - underWayLimit);
  return mark + newest;
}

export function decodeJson(text: string): unknown {
  if (!text.startsWith(mark)) return real.decodeJson(text);
  const number = Number(text.slice(mark.length));
  const value = underWay.get(number);
  if (!underWay.delete(number)) throw new TypeError("a value arrives a second time, or too late");
  return value;
}

/** For who watches a connection: the values whose numbers stand in a text of it. */
export function handedIn(text: string): unknown[] {
  const values: unknown[] = [];
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1))
    values.push(
      underWay.get(Number.parseInt(text.slice(at + mark.length, at + mark.length + digitsLimit), 10)),
    );
  return values;
}

/** The value as it arrives: of its own, without what JSON leaves out. */
export function copied(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "object")
    return typeof value === "function" || typeof value === "symbol" ? undefined : value;
  if (value === null) return null;
  if (isFixedForm(value)) return value;
  if (Array.isArray(value)) return value.map((member) => copied(member) ?? null);
  if ("toJSON" in value && typeof value.toJSON === "function") return copied(value.toJSON());
  const copy: Record<string, unknown> = {};
  const members = value as Record<string, unknown>; // cast: no array
  for (const name of Object.keys(members)) {
    const member = copied(members[name]);
    if (member !== undefined) copy[name] = member;
  }
  return copy;
}
