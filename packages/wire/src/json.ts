// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** Names that begin so are ours; a user's own gets one more `$` on the way. */
const ownSign = "$";
const bigintName = "$bigint";

/** JSON that keeps bigints: `{"$bigint":"12"}`. Any other member whose name begins with `$` arrives as it was. */
export function encodeJson(value: unknown): string {
  return JSON.stringify(signed(value));
}

/** Reads {@link encodeJson}'s text. Throws `link/protocol` for a member that is not of its form, `SyntaxError` for what is not JSON. */
export function decodeJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const mayHoldSigns = text.includes('"$') || text.includes("\\u0024"); // the two ways to begin a name so
  return mayHoldSigns ? restored(value) : value;
}

type Members = Record<string, unknown>;

/** The value as it travels: the same where there is nothing to change, else a copy. */
function signed(value: unknown): unknown {
  if (typeof value === "bigint") return { [bigintName]: value.toString() };
  if (typeof value !== "object" || value === null) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") return signed(value.toJSON());
  return Array.isArray(value) ? changed(value, signed) : signedMembers(value as Members); // cast: no array
}

function signedMembers(members: Members): Members {
  const names = Object.keys(members);
  if (!names.some((name) => name.startsWith(ownSign))) return changed(members, signed);
  return Object.fromEntries(
    names.map((name) => [name.startsWith(ownSign) ? ownSign + name : name, signed(members[name])]),
  );
}

/** What travelled, as it was; in place. */
function restored(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const members = value as Members; // cast: of an array, the indexes
  let isSigned = false;
  for (const name of Object.keys(members)) {
    const member = members[name];
    if (typeof member === "object") members[name] = restored(member);
    isSigned ||= name.startsWith(ownSign);
  }
  if (!isSigned) return value;
  if (Object.hasOwn(members, bigintName)) return readBigint(members);
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [
      name.startsWith(ownSign) ? name.slice(1) : name,
      member,
    ]),
  );
}

/** The same value when `change` changes no member of it, else a copy with what became of them. */
function changed<T extends object>(value: T, change: (member: unknown) => unknown): T {
  const members = value as Members; // cast: of an array, the indexes
  let copy: Members | undefined;
  for (const name of Object.keys(members)) {
    const member = change(members[name]);
    if (member === members[name]) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...members }) as Members; // cast: as above
    copy[name] = member;
  }
  return (copy ?? value) as T; // cast: a copy of it
}

function readBigint(members: Members): bigint {
  const digits = members[bigintName];
  if (Object.keys(members).length !== 1 || typeof digits !== "string" || !/^-?[0-9]{1,20}$/.test(digits)) {
    throw new SpaceError("link/protocol", { problem: "bad bigint" });
  }
  return BigInt(digits);
}
