// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ControlPlanePorts } from "@space/control-plane";
import { type ByteStore, SpaceError } from "@space/model";
import { DirectoryByteStore } from "@space/object-store";
import { replaceFileNow } from "@space/platform-linux/durable-file";
import { ChunkCollector, snapshotStore, TenantKeys } from "@space/snapshot";
import * as v from "valibot";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import type { DataDirectory } from "./data-directory.ts";
import { KeyEncryptionFile } from "./key-encryption-file.ts";
import {
  describePlace,
  openSnapshotPlace,
  type SnapshotPlace,
  snapshotPlaceSchema,
} from "./snapshot-place.ts";

/** Where an installation's snapshots are, and what opens them. */
export interface SnapshotStorage {
  readonly place: SnapshotPlace;
  readonly store: ByteStore;
  readonly wrapping: KeyEncryptionFile;
  readonly tenantKeys: TenantKeys;
}

/** The file of key-encryption keys in a data directory's `control` folder. */
export function keyEncryptionPath(control: string): string {
  return join(control, "key-encryption-keys");
}

/**
 * Opens the place that was chosen at the first start: `wanted` then, or a directory in the data directory. Another one is
 * refused later, for what was paused would be missing. The key-encryption key is made at the first start, and never
 * again: without it nothing could be read. Throws `host/unfit` or `store/failed`.
 */
export async function openSnapshotStorage(
  directory: SnapshotFolders,
  wanted?: SnapshotPlace,
): Promise<SnapshotStorage> {
  const known = readPlace(directory);
  const place = wanted ?? known ?? { kind: "directory", path: directory.objects };
  if (known !== undefined && describePlace(place) !== describePlace(known)) throw elsewhere(known);
  const store = await openSnapshotPlace(place);
  const keys = keyEncryptionPath(directory.control);
  const wrapping =
    known === undefined
      ? KeyEncryptionFile.open(keys, systemRandom)
      : KeyEncryptionFile.existing(keys, systemRandom);
  writePlace(directory, place); // of the same bucket the credentials may be in another file now
  return { place, store, wrapping, tenantKeys: new TenantKeys({ store, wrapping, random: systemRandom }) };
}

type SnapshotFolders = Pick<DataDirectory, "control" | "objects">;

/** The data directory's own folder is not noted by its path: the data directory may be moved. */
const noteSchema = v.variant("kind", [snapshotPlaceSchema, v.strictObject({ kind: v.literal("inside") })]);

function notePath({ control }: SnapshotFolders): string {
  return join(control, "snapshots.json");
}

/** What was chosen; undefined before the first start. */
function readPlace(directory: SnapshotFolders): SnapshotPlace | undefined {
  const path = notePath(directory);
  if (!existsSync(path)) return undefined;
  const note = v.parse(noteSchema, JSON.parse(readFileSync(path, "utf8")));
  return note.kind === "inside" ? { kind: "directory", path: directory.objects } : note;
}

function writePlace(directory: SnapshotFolders, place: SnapshotPlace): void {
  const isInside = place.kind === "directory" && place.path === directory.objects;
  const text = `${JSON.stringify(isInside ? { kind: "inside" } : place)}\n`;
  const path = notePath(directory);
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) replaceFileNow(path, text);
}

/**
 * As it is, with nothing written to it: where the data directory says, or in a copy of the directory that it was in, with a
 * copy of the key-encryption keys. Throws `host/unfit` or `store/failed`.
 */
export async function readSnapshotStorage(
  directory: SnapshotFolders,
  copies: { readonly objects?: string; readonly keys?: string },
): Promise<Pick<SnapshotStorage, "store" | "tenantKeys">> {
  const place: SnapshotPlace =
    copies.objects === undefined
      ? (readPlace(directory) ?? { kind: "directory", path: directory.objects })
      : { kind: "directory", path: copies.objects };
  const store =
    place.kind === "directory"
      ? await DirectoryByteStore.existing(place.path)
      : await openSnapshotPlace(place);
  const keys = copies.keys ?? keyEncryptionPath(directory.control);
  const wrapping = KeyEncryptionFile.existing(keys, systemRandom);
  return { store, tenantKeys: new TenantKeys({ store, wrapping, random: systemRandom }) };
}

/** What the control plane does with it. What is younger than `graceMs` is not looked at by a collector. */
export function snapshotPorts(
  { store, tenantKeys }: SnapshotStorage,
  graceMs: number,
): Pick<ControlPlanePorts, "snapshots" | "tenantKeys" | "collector"> {
  const sealing = { store, random: systemRandom };
  return {
    snapshots: snapshotStore(sealing),
    tenantKeys,
    collector: (references) =>
      new ChunkCollector({ ...sealing, references, clock: systemClock }, { graceMs }),
  };
}

function elsewhere(place: SnapshotPlace): SpaceError {
  return new SpaceError("host/unfit", {
    problem: `the snapshots of this installation are in ${describePlace(place)}`,
    remedy:
      "leave the place out, or name this one; to change it, copy everything in it first and then edit control/snapshots.json",
  });
}
