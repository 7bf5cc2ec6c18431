// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type ConnectedSandbox,
  type Json,
  type ListSandboxes,
  type SandboxService,
  type SandboxView,
  SpaceError,
} from "@space/model";

import type { Answer } from "./answer.ts";
import { createRequest, unsupportedFeature } from "./create-request.ts";
import { cursorAfter } from "./cursor.ts";
import { parseListQuery, parseUnpagedQuery } from "./list-query.ts";
import { type Call, type OperationPorts, sandboxIdOf } from "./operation-call.ts";
import { unsupported } from "./refusal.ts";
import type { OperationName } from "./routes.ts";
import { type ConnectBody, type CreateBody, parseBody } from "./schema.ts";
import { deleteTemplate, fork, listSnapshots, takeSnapshot } from "./snapshot-operations.ts";
import { connectedJson, detailJson, listedJson, shownState } from "./views.ts";

type Operation = (call: Call, ports: OperationPorts) => Promise<Answer>;

/** Which operations read a body. The others leave it. */
export const readsBody: Readonly<Record<OperationName, boolean>> = {
  "create-v1": true,
  "create-v2": true,
  "connect-v1": true,
  "connect-v2": true,
  resume: true,
  kill: false,
  get: false,
  list: false,
  "list-unpaged": false,
  timeout: true,
  pause: true,
  move: true,
  refresh: true,
  fork: true,
  snapshot: true,
  "list-snapshots": false,
  "delete-template": false,
};

/** All of them throw what {@link SandboxService} throws, and `input/invalid`. */
export const operations: Readonly<Record<OperationName, Operation>> = {
  "create-v1": (call, ports) => create(call, ports, parseBody(ports.schemas.createV1, call.body)),
  "create-v2": (call, ports) => create(call, ports, parseBody(ports.schemas.createV2, call.body)),
  "connect-v1": (call, ports) => connect(call, ports, parseBody(ports.schemas.connectV1, call.body)),
  "connect-v2": (call, ports) => connect(call, ports, parseBody(ports.schemas.connectV2, call.body)),
  resume,
  kill,
  get,
  list,
  "list-unpaged": listUnpaged,
  timeout,
  pause,
  move,
  refresh,
  fork,
  snapshot: takeSnapshot,
  "list-snapshots": listSnapshots,
  "delete-template": deleteTemplate,
};

async function create(call: Call, ports: OperationPorts, body: CreateBody): Promise<Answer> {
  const feature = unsupportedFeature(body);
  if (feature !== undefined) return unsupported(feature);
  const request = createRequest(body, call.idempotencyKey);
  const sandbox = await ports.service.create(call.caller, request);
  return { ...connectedAnswer(201, sandbox, ports), made: sandbox.sandboxId };
}

async function connect(call: Call, ports: OperationPorts, body: ConnectBody): Promise<Answer> {
  const sandbox = await ports.service.connect(call.caller, sandboxIdOf(call), connectRequest(body));
  return connectedAnswer(sandbox.resumed ? 201 : 200, sandbox, ports);
}

async function resume(call: Call, ports: OperationPorts): Promise<Answer> {
  const sandboxId = sandboxIdOf(call);
  const request = connectRequest(parseBody(ports.schemas.resume, call.body));
  return connectedAnswer(201, await ports.service.resume(call.caller, sandboxId, request), ports);
}

function lost({ sandboxId, lostReason, snapshot }: SandboxView): SpaceError {
  const reason = lostReason ?? "unknown";
  return new SpaceError("sandbox/lost", { sandboxId, reason, snapshot: snapshot?.digest ?? null });
}

function connectRequest({
  timeout,
  memory,
  workerID,
  snapshot,
}: ConnectBody): Parameters<SandboxService["connect"]>[2] {
  return {
    timeoutMs: timeout * 1000,
    memory,
    ...(workerID === undefined ? {} : { workerId: workerID }),
    ...(snapshot === undefined ? {} : { snapshot }),
  };
}

async function kill(call: Call, ports: OperationPorts): Promise<Answer> {
  await ports.service.kill(call.caller, sandboxIdOf(call));
  return { status: 204 };
}

async function get(call: Call, ports: OperationPorts): Promise<Answer> {
  const sandbox = await ports.service.get(call.caller, sandboxIdOf(call));
  const shown = shownState(sandbox);
  if (shown === undefined) throw new SpaceError("sandbox/not-found", { sandboxId: call.sandboxId });
  if (shown === "lost") throw lost(sandbox);
  return { status: 200, body: detailJson(sandbox, shown, ports.views) };
}

/** One more than the page is asked for: so the last page is known as such also when it is exactly full. */
async function list(call: Call, ports: OperationPorts): Promise<Answer> {
  const request = parseListQuery(call.query, ports.limits);
  const found = await ports.service.list(call.caller, { ...request, limit: request.limit + 1 });
  const page = found.slice(0, request.limit);
  const last = found.length > request.limit ? page.at(-1) : undefined;
  const headers = {
    ...(last === undefined ? {} : { "X-Next-Token": cursorAfter(last, request.order) }),
    ...totalRunning(request, page, last === undefined),
  };
  return { status: 200, headers, body: listedBody(page, ports) };
}

/** E2B's optional header, where the one page is the whole list and so tells it. */
function totalRunning(
  { states, after }: ListSandboxes,
  page: readonly SandboxView[],
  isLast: boolean,
): Readonly<Record<string, string>> {
  if (!isLast || after !== undefined || !states.includes("running")) return {};
  return { "X-Total-Running": String(page.filter((sandbox) => shownState(sandbox) === "running").length) };
}

async function listUnpaged(call: Call, ports: OperationPorts): Promise<Answer> {
  const request = parseUnpagedQuery(call.query, ports.limits);
  return { status: 200, body: listedBody(await ports.service.list(call.caller, request), ports) };
}

function listedBody(sandboxes: readonly SandboxView[], ports: OperationPorts): Json {
  return sandboxes.flatMap((sandbox) => {
    const shown = shownState(sandbox);
    return shown === undefined ? [] : [listedJson(sandbox, shown, ports.views)];
  });
}

async function timeout(call: Call, ports: OperationPorts): Promise<Answer> {
  const sandboxId = sandboxIdOf(call);
  const { timeout: seconds } = parseBody(ports.schemas.timeout, call.body);
  await ports.service.setTimeout(call.caller, sandboxId, seconds * 1000);
  return { status: 204 };
}

async function pause(call: Call, ports: OperationPorts): Promise<Answer> {
  const sandboxId = sandboxIdOf(call);
  const { memory } = parseBody(ports.schemas.pause, call.body);
  await ports.service.pause(call.caller, sandboxId, memory);
  return { status: 204 };
}

/** SPACE's own: says in a header whether the memory went along, because there is no body. */
async function move(call: Call, ports: OperationPorts): Promise<Answer> {
  const sandboxId = sandboxIdOf(call);
  const { workerID } = parseBody(ports.schemas.move, call.body);
  const request = workerID === undefined ? {} : { workerId: workerID };
  const { memoryMoved } = await ports.service.move(call.caller, sandboxId, request);
  return { status: 204, headers: { "space-memory-moved": String(memoryMoved) } };
}

/** Extends the life of what runs; never shortens it and never wakes what is paused. */
async function refresh(call: Call, ports: OperationPorts): Promise<Answer> {
  const sandboxId = sandboxIdOf(call);
  const { duration } = parseBody(ports.schemas.refresh, call.body);
  const { state, endAtMs } = await ports.service.get(call.caller, sandboxId);
  if (state !== "running") throw new SpaceError("sandbox/state", { sandboxId, state });
  const timeoutMs = duration * 1000;
  if (ports.clock.wallMs() + timeoutMs > endAtMs)
    await ports.service.setTimeout(call.caller, sandboxId, timeoutMs);
  return { status: 204 };
}

function connectedAnswer(status: number, sandbox: ConnectedSandbox, ports: OperationPorts): Answer {
  return { status, body: connectedJson(sandbox, ports.views) };
}
