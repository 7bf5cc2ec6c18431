// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { type ByteStore, Secret, SpaceError, unreachable } from "@space/model";
import { DirectoryByteStore, S3ByteStore } from "@space/object-store";
import * as v from "valibot";
import { requirePrivate } from "./private-file.ts";

const path = v.pipe(v.string(), v.startsWith("/"));

/** Where snapshots are. Holds no secret: an S3 key pair is in a file of its own. */
export const snapshotPlaceSchema = v.variant("kind", [
  v.strictObject({ kind: v.literal("directory"), path }),
  v.strictObject({
    kind: v.literal("s3"),
    endpoint: v.pipe(v.string(), v.url(), v.regex(/^https?:\/\/[^/@?#]+\/?$/)),
    bucket: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/)),
    region: v.pipe(v.string(), v.regex(/^[a-z0-9-]{1,40}$/)),
    credentials: path,
  }),
]);

export type SnapshotPlace = v.InferOutput<typeof snapshotPlaceSchema>;

/** Throws `store/failed`; `host/unfit` for a directory of an earlier version, and for credentials that are none or are open to others. */
export async function openSnapshotPlace(place: SnapshotPlace): Promise<ByteStore> {
  switch (place.kind) {
    case "directory":
      requireSealed(place.path);
      return DirectoryByteStore.open(place.path);
    case "s3": {
      const { endpoint, bucket, region } = place;
      return S3ByteStore.open({ endpoint, bucket, region, ...readCredentials(place.credentials) });
    }
    default:
      return unreachable(place);
  }
}

/** For a person. */
export function describePlace(place: SnapshotPlace): string {
  return place.kind === "directory" ? place.path : `bucket ${place.bucket} at ${place.endpoint}`;
}

/** What was stored before snapshots were sealed lies in folders that are named by two hexadecimal digits. */
function requireSealed(folder: string): void {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  if (!names.some((name) => /^[0-9a-f]{2}$/.test(name))) return;
  throw new SpaceError("host/unfit", {
    problem: `${folder} holds snapshots of a version before they were sealed, which this one cannot read`,
    remedy:
      "resume what is needed with the version that made them; or give another --data; or move that folder away: then what was paused can only be killed",
  });
}

const accessKeyName = "AWS_ACCESS_KEY_ID";
const secretKeyName = "AWS_SECRET_ACCESS_KEY";

/** Two lines, `NAME=value`, as tools for S3 write them. */
function readCredentials(file: string): {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret<string>;
} {
  if (!existsSync(file)) throw noCredentials(`${file} is not there`);
  requirePrivate(file);
  const lines = readFileSync(file, "utf8").split("\n");
  const value = (name: string): string | undefined =>
    lines
      .find((line) => line.startsWith(`${name}=`))
      ?.slice(name.length + 1)
      .trim();
  const [accessKeyId = "", secret = ""] = [value(accessKeyName), value(secretKeyName)];
  if (accessKeyId === "" || secret === "") throw noCredentials(`${file} holds no key pair`);
  return { accessKeyId, secretAccessKey: new Secret(secret) };
}

function noCredentials(problem: string): SpaceError {
  return new SpaceError("host/unfit", {
    problem,
    remedy: `write a file of mode 0600 with two lines, ${accessKeyName}=… and ${secretKeyName}=…`,
  });
}
