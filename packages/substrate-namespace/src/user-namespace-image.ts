// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SpaceError } from "@space/model";
import { uidsPerGuest } from "./uid-ranges.ts";

const form = /^userns-[0-9]+\.img$/;
/** How CRIU begins any image of its own, and this kind. */
const magics = [0x54564319, 0x55474906] as const;

/**
 * A saved guest's user ids are its own, 0 to 65535; only one image says where they lie on the host. It is written anew, for
 * the range that the guest has here. Throws `snapshot/refused` when there is not exactly one.
 */
export function moveUserIds(images: string, uidBase: number): void {
  const [name, ...more] = readdirSync(images).filter((file) => form.test(file));
  if (name === undefined || more.length > 0)
    throw new SpaceError("snapshot/refused", { problem: "its user ids are not said" });
  writeFileSync(join(images, name), userNamespaceImage(uidBase));
}

/** The image of a user namespace with one range for users and the same for groups. */
export function userNamespaceImage(uidBase: number): Buffer {
  const extent = message([
    [1, 0],
    [2, uidBase],
    [3, uidsPerGuest],
  ]);
  const body = Buffer.concat([0x0a, 0x12].flatMap((tag) => [Buffer.from([tag, extent.length]), extent]));
  const head = Buffer.alloc(12);
  for (const [at, magic] of magics.entries()) head.writeUInt32LE(magic, at * 4);
  head.writeUInt32LE(body.length, 8);
  return Buffer.concat([head, body]);
}

/** Protocol Buffers: unsigned fields by number. */
function message(fields: readonly (readonly [field: number, value: number])[]): Buffer {
  return Buffer.from(fields.flatMap(([field, value]) => [field << 3, ...varint(value)]));
}

function varint(value: number): readonly number[] {
  const bytes: number[] = [];
  let left = value;
  while (left >= 0x80) {
    bytes.push((left % 0x80) + 0x80);
    left = Math.floor(left / 0x80);
  }
  return [...bytes, left];
}
