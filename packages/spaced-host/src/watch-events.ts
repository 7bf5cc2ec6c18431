// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock } from "@space/model";
import { GuestError, type GuestPool, type WatchEvent, type WatchEventKind } from "@space/spaced-guest";
import { WatchDirResponseSchema } from "@space/wire/envd";
import { envelope } from "./connect-envelope.ts";
import { entryInfo } from "./entry-info.ts";
import { EnvdError, fileError } from "./envd-error.ts";
import type { WatchTarget } from "./folder-watch.ts";
import type { FolderWatches } from "./folder-watches.ts";
import type { GuestUsers, UserTable } from "./guest-users.ts";
import { encodeMessage } from "./message-codec.ts";
import type { RpcStream } from "./rpc-stream.ts";
import { Subscriber, type SubscriberOptions } from "./subscriber.ts";

const eventTypes: Readonly<Record<WatchEventKind, string>> = {
  created: "EVENT_TYPE_CREATE",
  written: "EVENT_TYPE_WRITE",
  removed: "EVENT_TYPE_REMOVE",
  renamed: "EVENT_TYPE_RENAME",
  "mode-changed": "EVENT_TYPE_CHMOD",
};

/** The guest whose folders are watched. */
export interface WatchedGuest {
  readonly users: GuestUsers;
  readonly watches: FolderWatches;
  readonly pool: GuestPool;
}

/** Who reads the events of a folder on this stream. */
export function watchReader(stream: RpcStream, options: SubscriberOptions, clock: Clock): Subscriber {
  return new Subscriber(stream, { ...options, keepalive: framed(stream, { keepalive: {} }) }, clock);
}

/** Tells this reader what happens in the folder from now on, after `greeting`. */
export async function follow(
  target: WatchTarget,
  reader: Subscriber,
  { guest, greeting }: { readonly guest: WatchedGuest; readonly greeting: readonly Buffer[] },
): Promise<void> {
  const { stream } = reader;
  const table = await guest.users.table();
  const early: Buffer[] = [...greeting];
  let tell = (message: Buffer): void => void early.push(message);
  const opening = guest.watches.open(
    target,
    {
      subscriber: reader,
      onEvent: (event) => tell(framed(stream, { filesystem: eventFields(event, table) })),
      onOverflow: () =>
        stream.fail(new EnvdError("resource_exhausted", "events were lost: they were not read in time")),
      onGone: () => stream.reset("guest lost"),
    },
    guest.pool,
  );
  const watch = await watched(target, opening);
  tell = (message) => {
    reader.push(message);
    watch.setPaused(stream.blocked);
  };
  stream.listenForDrain(() => watch.setPaused(false));
  stream.onOver(() => guest.watches.close(watch));
  if (stream.over) return guest.watches.close(watch);
  for (const message of early) tell(message);
}

/** One message of `WatchDir`, in its envelope. */
export function framed(stream: RpcStream, message: JsonObject): Buffer {
  return envelope(encodeMessage(WatchDirResponseSchema, stream.codec, message));
}

/** Throws the error that clients know for a folder that cannot be watched. */
export async function watched<T>(target: WatchTarget, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    throw error instanceof GuestError ? watchError(error, target.path) : error;
  }
}

function watchError(cause: GuestError, path: string): EnvdError {
  switch (cause.code) {
    case "EOPNOTSUPP":
      return new EnvdError("invalid_argument", `path '${path}' is on a network mount`, { cause });
    case "ENOSPC":
    case "EMFILE":
      return new EnvdError("resource_exhausted", `path '${path}' has too many directories to watch`, {
        cause,
      });
    default:
      return fileError(cause, path);
  }
}

/** An event as messages have it. */
export function eventFields({ kind, name, entry }: WatchEvent, table: UserTable): JsonObject {
  const fields: JsonObject = { name, type: eventTypes[kind] };
  if (entry !== undefined) fields["entry"] = entryInfo(entry, table);
  return fields;
}
