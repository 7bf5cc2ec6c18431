// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** Names that begin so are ours; a user's own gets one more `$` on the way. */
const ownSign = "$";
const bigintName = "$bigint";

/** JSON that keeps bigints: `{"$bigint":"12"}`. Any other member whose name begins with `$` arrives as it was. */
export function encodeJson(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (typeof member === "bigint") return new TaggedBigint(member);
    return isEscapable(member) ? renamed(member, (name) => ownSign + name) : member;
  });
}

/** Reads {@link encodeJson}'s text. Throws `link/protocol` for a member that is not of its form, `SyntaxError` for what is not JSON. */
export function decodeJson(text: string): unknown {
  return JSON.parse(text, (_name, member: unknown) => {
    if (!isEscapable(member)) return member;
    if (Object.hasOwn(member, bigintName)) return readBigint(member);
    return renamed(member, (name) => name.slice(1));
  });
}

/** What a bigint becomes; its own members are not escaped. */
class TaggedBigint {
  readonly [bigintName]: string;

  constructor(value: bigint) {
    this[bigintName] = value.toString();
  }
}

type Members = Readonly<Record<string, unknown>>;

/** Whether it is a plain object with a member whose name begins with `$`. */
function isEscapable(value: unknown): value is Members {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) || value instanceof TaggedBigint) return false;
  return Object.keys(value).some((name) => name.startsWith(ownSign));
}

function renamed(members: Members, rename: (name: string) => string): Members {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name.startsWith(ownSign) ? rename(name) : name, value]),
  );
}

function readBigint(members: Members): bigint {
  const digits = members[bigintName];
  if (Object.keys(members).length !== 1 || typeof digits !== "string" || !/^-?[0-9]{1,20}$/.test(digits)) {
    throw new SpaceError("link/protocol", { problem: "bad bigint" });
  }
  return BigInt(digits);
}
