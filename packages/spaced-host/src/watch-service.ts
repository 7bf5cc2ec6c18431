// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { JsonObject } from "@bufbuild/protobuf";
import { GuestError, type WatchEvent, type WatchEventKind } from "@space/spaced-guest";
import { type CreateWatcherRequest, type WatchDirRequest, WatchDirResponseSchema } from "@space/wire/envd";
import { envelope } from "./connect-envelope.ts";
import { entryInfo } from "./entry-info.ts";
import { EnvdError, fileError } from "./envd-error.ts";
import type { WatchTarget } from "./folder-watch.ts";
import type { UserTable } from "./guest-users.ts";
import { encodeMessage } from "./message-codec.ts";
import type { OperationContext } from "./operation-context.ts";
import type { RpcStream } from "./rpc-stream.ts";
import { Subscriber } from "./subscriber.ts";

const eventTypes: Readonly<Record<WatchEventKind, string>> = {
  created: "EVENT_TYPE_CREATE",
  written: "EVENT_TYPE_WRITE",
  removed: "EVENT_TYPE_REMOVE",
  renamed: "EVENT_TYPE_RENAME",
  "mode-changed": "EVENT_TYPE_CHMOD",
};

/** `WatchDir`: events for as long as the caller reads. Events that are lost end it, with an error that says so. */
export async function watchDir(
  request: WatchDirRequest,
  stream: RpcStream,
  context: OperationContext,
): Promise<void> {
  const { activation } = context;
  const target = await findTarget(request, context);
  const { users } = activation;
  const table = await users.table();
  const framed = (message: JsonObject): Buffer =>
    envelope(encodeMessage(WatchDirResponseSchema, stream.codec, message));
  const reader = new Subscriber(
    stream,
    {
      keepaliveMs: context.keepaliveMs(),
      deadlineMs: context.timeoutMs(),
      keepalive: framed({ keepalive: {} }),
    },
    activation.ports.clock,
  );
  const early: Buffer[] = [framed({ start: {} })];
  let tell = (message: Buffer): void => void early.push(message);
  const opening = activation.watches.open(
    target,
    {
      onEvent: (event) => tell(framed({ filesystem: eventFields(event, table) })),
      onOverflow: () =>
        stream.fail(new EnvdError("resource_exhausted", "events were lost: they were not read in time")),
      onGone: () => stream.reset("guest lost"),
    },
    activation.pool,
  );
  const watch = await watched(target, opening);
  tell = (message) => {
    reader.push(message);
    watch.setPaused(stream.blocked);
  };
  stream.listenForDrain(() => watch.setPaused(false));
  stream.onOver(() => activation.watches.close(watch));
  if (stream.over) return activation.watches.close(watch);
  for (const message of early) tell(message);
}

/** `CreateWatcher`: the same for callers that poll. */
export async function createWatcher(
  request: CreateWatcherRequest,
  context: OperationContext,
): Promise<string> {
  const { activation } = context;
  const target = await findTarget(request, context);
  const table = await activation.users.table();
  const { watches, pool } = activation;
  return watched(
    target,
    watches.create(target, (event) => eventFields(event, table), pool),
  );
}

async function findTarget(
  request: Pick<WatchDirRequest, "path" | "recursive" | "includeEntry" | "allowNetworkMounts">,
  context: OperationContext,
): Promise<WatchTarget> {
  const { recursive, includeEntry: withEntries, allowNetworkMounts } = request;
  const path = context.resolve(request.path, await context.user());
  return { path, options: { recursive, withEntries, allowNetworkMounts } };
}

async function watched<T>(target: WatchTarget, opening: Promise<T>): Promise<T> {
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

function eventFields({ kind, name, entry }: WatchEvent, table: UserTable): JsonObject {
  const fields: JsonObject = { name, type: eventTypes[kind] };
  if (entry !== undefined) fields["entry"] = entryInfo(entry, table);
  return fields;
}
