// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { CreateWatcherRequest, WatchDirRequest } from "@space/wire/envd";
import type { WatchTarget } from "./folder-watch.ts";
import type { OperationContext } from "./operation-context.ts";
import type { RpcStream } from "./rpc-stream.ts";
import { eventFields, follow, framed, watched, watchReader } from "./watch-events.ts";

/** `WatchDir`: events for as long as the caller reads. Events that are lost end it, with an error that says so. */
export async function watchDir(
  request: WatchDirRequest,
  stream: RpcStream,
  context: OperationContext,
): Promise<void> {
  const { activation } = context;
  const target = await findTarget(request, context);
  const times = { keepaliveMs: context.keepaliveMs(), deadlineMs: context.timeoutMs() };
  const { stream: named } = context;
  const reader = watchReader(stream, { ...times, named }, activation.ports.clock);
  await follow(target, reader, { guest: activation, greeting: [framed(stream, { start: {} })] });
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
