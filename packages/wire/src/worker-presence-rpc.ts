// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Clock,
  identityToJson,
  type LeaseAnswer,
  type LeaseRequest,
  members,
  parseDigest,
  parseIdentity,
  parsePodUid,
  parseStoreSuccession,
  parseSubstrateName,
  parseWorkerId,
  SpaceError,
  type WorkerHello,
  type WorkerPresence,
  type WorkerReport,
  type WorkerWelcome,
} from "@space/model";
import type { FrameLink } from "./link.ts";
import { callRpc, type RpcHandler } from "./rpc.ts";
import { inventoryToJson, parseInteger, parseInventory, parseText } from "./worker-control-codec.ts";

/** How long a worker waits for the control plane's answer. */
export const presenceDeadlineMs = 15_000;

const longestRetryMs = 60_000;

/** The control plane's ear, over the link that the worker dialled. Throws `link/closed` or `deadline/passed`. */
export function workerPresenceClient(link: FrameLink, clock: Clock): WorkerPresence {
  const call = (method: string, params: unknown): Promise<unknown> =>
    callRpc(link, clock, { method, params, deadlineMs: presenceDeadlineMs });
  return {
    hello: async (hello) => parseWelcome(await call("control/hello", helloToJson(hello))),
    report: async (report) => {
      await call("control/report", { ...report, identity: identityToJson(report.identity) });
    },
    renew: async (request) => parseLeaseAnswer(await call("control/renew", request)),
  };
}

/**
 * The handlers with which the control plane serves one worker's link. Who speaks is proved by the link's TLS peer: the
 * presence must compare `hello.workerId` and each report's placement with it.
 */
export function workerPresenceHandlers(presence: WorkerPresence): ReadonlyMap<string, RpcHandler> {
  return new Map<string, RpcHandler>([
    ["control/hello", async (params) => presence.hello(parseHello(params))],
    ["control/report", async (params) => presence.report(parseReport(params))],
    ["control/renew", async (params) => presence.renew(parseLeaseRequest(params))],
  ]);
}

function helloToJson(hello: WorkerHello): unknown {
  return { ...hello, inventory: inventoryToJson(hello.inventory) };
}

const helloMembers = [
  "workerId",
  "substrate",
  "capacity",
  "freeSlots",
  "endpoint",
  "inventory",
  "bundleVersion",
  "feedPosition",
  "store",
] as const;

function parseHello(value: unknown): WorkerHello {
  const hello = members(value, "hello", helloMembers, ["podUid"]);
  const endpoint = members(hello["endpoint"], "endpoint", ["host", "port"]);
  const podUid = parsePodUid(hello["podUid"]);
  const capacity = parseInteger(hello["capacity"], "capacity", 0, 1_000_000);
  return {
    workerId: parseWorkerId(hello["workerId"]),
    substrate: parseSubstrateName(hello["substrate"]),
    ...(podUid === undefined ? {} : { podUid }),
    capacity,
    freeSlots: parseInteger(hello["freeSlots"], "freeSlots", 0, capacity),
    endpoint: {
      host: parseText(endpoint["host"], "host", 255),
      port: parseInteger(endpoint["port"], "port", 1, 65_535),
    },
    inventory: parseInventory(hello["inventory"]),
    bundleVersion: parseInteger(hello["bundleVersion"], "bundleVersion", 0, Number.MAX_SAFE_INTEGER),
    feedPosition: parseInteger(hello["feedPosition"], "feedPosition", 0, Number.MAX_SAFE_INTEGER),
    store: parseStoreSuccession(hello["store"]),
  };
}

function parseReport(value: unknown): WorkerReport {
  const { identity, what, reason } = members(value, "report", ["identity", "what", "reason"]);
  if (what !== "exited") throw new SpaceError("input/invalid", { field: "what", problem: "is not known" });
  return { identity: parseIdentity(identity), what, reason: parseText(reason, "reason", 1024) };
}

function parseWelcome(value: unknown): WorkerWelcome {
  const { bundle } = members(value, "welcome", ["bundle"]);
  return { bundle: bundle === null ? null : parseText(bundle, "bundle") };
}

function parseLeaseRequest(value: unknown): LeaseRequest {
  const { nonce, records } = members(value, "renew", ["nonce", "records"]);
  return { nonce: parseText(nonce, "nonce", 64), records: parseDigest(records) };
}

function parseLeaseAnswer(value: unknown): LeaseAnswer {
  const { kind, retryMs } = members(value, "lease", ["kind"], ["retryMs"]);
  if (kind === "granted" && retryMs === undefined) return { kind };
  if (kind !== "withheld") throw new SpaceError("input/invalid", { field: "kind", problem: "is not known" });
  return { kind, retryMs: parseInteger(retryMs, "retryMs", 0, longestRetryMs) };
}
