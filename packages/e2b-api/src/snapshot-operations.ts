// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ForkedSandbox, type Json, type SnapshotView, unreachable } from "@space/model";

import type { Answer } from "./answer.ts";
import { snapshotCursorAfter } from "./cursor.ts";
import { parseSnapshotQuery } from "./list-query.ts";
import { type Call, type OperationPorts, sandboxIdOf } from "./operation-call.ts";
import { refusalOf } from "./refusal.ts";
import { parseBody } from "./schema.ts";
import { connectedJson, type ViewSettings } from "./views.ts";

export async function takeSnapshot(call: Call, { service, schemas }: OperationPorts): Promise<Answer> {
  const sandboxId = sandboxIdOf(call);
  const { name } = parseBody(schemas.snapshot, call.body);
  const wanted = name === undefined || name === "" ? undefined : name;
  return { status: 201, body: snapshotJson(await service.snapshot(call.caller, sandboxId, wanted)) };
}

/** One more than the page is asked for: so the last page is known as such also when it is exactly full. */
export async function listSnapshots(call: Call, { service }: OperationPorts): Promise<Answer> {
  const request = parseSnapshotQuery(call.query);
  const found = await service.listSnapshots(call.caller, { ...request, limit: request.limit + 1 });
  const page = found.slice(0, request.limit);
  const last = found.length > request.limit ? page.at(-1) : undefined;
  const headers = last === undefined ? {} : { "X-Next-Token": snapshotCursorAfter(last) };
  return { status: 200, headers, body: page.map(snapshotJson) };
}

/** E2B's clients delete snapshots so; templates of the installation are no caller's to delete. */
export async function deleteTemplate(call: Call, { service }: OperationPorts): Promise<Answer> {
  await service.deleteSnapshot(call.caller, call.templateId);
  return { status: 204 };
}

export async function fork(call: Call, { service, schemas, views }: OperationPorts): Promise<Answer> {
  const sandboxId = sandboxIdOf(call);
  const { count, timeout } = parseBody(schemas.fork, call.body);
  const forked = await service.fork(call.caller, sandboxId, { count, timeoutMs: timeout * 1000 });
  return { status: 201, body: forked.map((one) => forkedJson(one, views)) };
}

/** What could not be kept is told: E2B's clients drop `space`. */
function snapshotJson({
  template,
  names,
  sandboxId,
  digest,
  memory,
  sizeBytes,
  createdAtMs,
}: SnapshotView): Json {
  const createdAt = new Date(createdAtMs).toISOString();
  const space = { sandboxID: sandboxId, digest, memory, sizeBytes, createdAt };
  return { snapshotID: template, names, space };
}

/** Each child is answered as a create would be: with the sandbox, or with what a failed create's body says. */
function forkedJson(forked: ForkedSandbox, views: ViewSettings): Json {
  switch (forked.kind) {
    case "sandbox":
      return { sandbox: connectedJson(forked.sandbox, views), space: { memory: forked.memory } };
    case "failed":
      return { error: refusalOf(forked.error).body ?? null };
    default:
      return unreachable(forked);
  }
}
