// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { posix } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import type { GuestEntry } from "@space/spaced-guest";
import type { UserTable } from "./guest-users.ts";

const permissionBits = 0o777;
const specialBits: readonly (readonly [number, string])[] = [
  [0o4000, "u"],
  [0o2000, "g"],
  [0o1000, "t"],
];

/** `EntryInfo` as protobuf's JSON, zero values left out. */
export function entryInfo(entry: GuestEntry, table: UserTable): JsonObject {
  const mode = entry.mode & permissionBits;
  const info: JsonObject = {
    name: posix.basename(entry.path),
    path: entry.path,
    permissions: permissionText(entry),
    owner: table.userNames.get(entry.uid) ?? entry.uid.toString(),
    group: table.groupNames.get(entry.gid) ?? entry.gid.toString(),
  };
  if (info["name"] === "") info["name"] = entry.path;
  const type = typeName(entry);
  if (type !== undefined) info["type"] = type;
  if (entry.sizeBytes > 0) info["size"] = entry.sizeBytes.toString();
  if (mode !== 0) info["mode"] = mode;
  const modifiedAt = timestamp(entry.modifiedAtMs);
  if (modifiedAt !== undefined) info["modifiedTime"] = modifiedAt;
  if (entry.isSymlink) info["symlinkTarget"] = entry.symlinkTarget;
  return info;
}

/** The mode as E2B's agent prints it: Go's letters for what is no plain file, then nine permission letters. */
export function permissionText({ type, isSymlink, mode }: GuestEntry): string {
  if (isSymlink) return "Lrwxrwxrwx"; // a link's own mode, which Linux does not use
  let kind = type === "directory" ? "d" : "";
  for (const [bit, letter] of specialBits) if ((mode & bit) !== 0) kind += letter;
  let text = kind === "" ? "-" : kind;
  for (let shift = 8; shift >= 0; shift -= 1)
    text += ((mode >> shift) & 1) === 1 ? "rwx"[(8 - shift) % 3] : "-";
  return text;
}

function typeName({ type }: GuestEntry): string | undefined {
  switch (type) {
    case "file":
      return "FILE_TYPE_FILE";
    case "directory":
      return "FILE_TYPE_DIRECTORY";
    case "other":
      return undefined; // FILE_TYPE_UNSPECIFIED: a device, a socket, a link that leads nowhere
  }
}

/** A Timestamp's JSON; undefined outside the years that it can say (a guest may set any time). */
function timestamp(atMs: number): string | undefined {
  const microseconds = Math.round((atMs - Math.floor(atMs)) * 1000);
  const date = new Date(Math.floor(atMs));
  const year = date.getUTCFullYear();
  if (Number.isNaN(year) || year < 1 || year > 9999) return undefined;
  const text = date.toISOString();
  if (microseconds > 0 && microseconds < 1000) {
    return text.replace("Z", `${microseconds.toString().padStart(3, "0")}Z`);
  }
  return text.replace(".000Z", "Z");
}
