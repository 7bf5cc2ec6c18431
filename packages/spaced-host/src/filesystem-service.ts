// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { GuestError } from "@space/spaced-guest";
import { Filesystem, type ListDirRequest } from "@space/wire/envd";
import { type RpcMethod, serverStream, unary } from "./connect-rpc.ts";
import { entryInfo } from "./entry-info.ts";
import { EnvdError, onPath } from "./envd-error.ts";
import type { OperationContext } from "./operation-context.ts";
import { createWatcher, watchDir } from "./watch-service.ts";

const method = Filesystem.method;
/** Directory levels and entries of one listing. */
const depthLimit = 1_000;
const listingLimit = 100_000;

/** The file system service, by method name. */
export const filesystemMethods: ReadonlyMap<string, RpcMethod> = new Map([
  [
    "Stat",
    unary(method.stat, async ({ path }, context) => {
      const target = context.resolve(path, await context.user());
      const { pool, users } = context.activation;
      const entry = await onPath(
        target,
        pool.use((guest) => guest.stat(target)),
      );
      return { entry: entryInfo(entry, await users.table()) };
    }),
  ],
  ["ListDir", unary(method.listDir, listDir)],
  [
    "MakeDir",
    unary(method.makeDir, async ({ path }, context) => {
      const user = await context.user();
      const target = context.resolve(path, user);
      const { pool, users } = context.activation;
      const entry = await pool.use(async (guest) => {
        await makeDirectory(guest.mkdir(target, user), target);
        return onPath(target, guest.stat(target));
      });
      return { entry: entryInfo(entry, await users.table()) };
    }),
  ],
  [
    "Move",
    unary(method.move, async ({ source, destination }, context) => {
      const user = await context.user();
      const from = context.resolve(source, user);
      const to = context.resolve(destination, user);
      const { pool, users } = context.activation;
      const entry = await onPath(
        from,
        pool.use((guest) => guest.rename(from, to, user)),
      );
      return { entry: entryInfo(entry, await users.table()) };
    }),
  ],
  [
    "Remove",
    unary(method.remove, async ({ path }, context) => {
      const target = context.resolve(path, await context.user());
      await onPath(
        target,
        context.activation.pool.use((guest) => guest.remove(target)),
      );
      return {};
    }),
  ],
  ["WatchDir", serverStream(method.watchDir, "watch", watchDir)],
  [
    "CreateWatcher",
    unary(method.createWatcher, async (request, context) => ({
      watcherId: await createWatcher(request, context),
    })),
  ],
  [
    "GetWatcherEvents",
    unary(method.getWatcherEvents, async ({ watcherId }, { activation }) => {
      const events = activation.watches.take(watcherId);
      return events.length === 0 ? {} : { events };
    }),
  ],
  [
    "RemoveWatcher",
    unary(method.removeWatcher, async ({ watcherId }, { activation }) => {
      activation.watches.remove(watcherId);
      return {};
    }),
  ],
]);

async function listDir({ path, depth }: ListDirRequest, context: OperationContext) {
  const target = context.resolve(path, await context.user());
  const { pool, users } = context.activation;
  const levels = Math.min(Math.max(depth, 1), depthLimit);
  const entries = await onPath(
    target,
    pool.use((guest) => guest.list(target, levels, listingLimit)),
  );
  const table = await users.table();
  return { entries: entries.map((entry) => entryInfo(entry, table)) };
}

/** Existing directories and files in the way are told apart in the words that clients know. */
async function makeDirectory(made: Promise<void>, path: string): Promise<void> {
  try {
    await made;
  } catch (cause) {
    if (!(cause instanceof GuestError)) throw cause;
    if (cause.code === "EEXIST")
      throw new EnvdError("already_exists", `directory already exists: ${path}`, { cause });
    if (cause.code === "ENOTDIR") {
      throw new EnvdError("invalid_argument", `path already exists but it is not a directory: ${path}`, {
        cause,
      });
    }
    await onPath(path, Promise.reject(cause));
  }
}
