// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import {
  type Clock,
  identityToJson,
  isSpaceError,
  members,
  parseDigest,
  parseIdentity,
  SpaceError,
  type WorkerControl,
  type WorkerId,
} from "@space/model";
import type { FrameLink } from "./link.ts";
import { callRpc, type RpcHandler } from "./rpc.ts";
import {
  activateRequestToJson,
  inventoryToJson,
  manifestToJson,
  parseActivateAnswer,
  parseActivateRequest,
  parseBoolean,
  parseIdentityParameter,
  parseInventory,
  parseNullableDigest,
  parseSnapshotAnswer,
  parseTenantKey,
  tenantKeyToJson,
} from "./worker-control-codec.ts";

/** How long the control plane waits for each command's answer. After it the effect is unknown; repeating is safe. */
export const workerCommandDeadlinesMs = {
  "worker/activate": 120_000,
  "worker/snapshot": 300_000,
  "worker/abort-pause": 30_000,
  "worker/inventory": 15_000,
} as const;
type WorkerCommand = keyof typeof workerCommandDeadlinesMs;

/**
 * The port over a link to one worker. The worker's own errors pass through; a link that ends or an answer that stays
 * away throws `worker/unreachable` (the effect is then unknown).
 */
export function workerControlClient(link: FrameLink, clock: Clock, workerId: WorkerId): WorkerControl {
  const call = async (method: WorkerCommand, params: unknown): Promise<unknown> => {
    try {
      return await callRpc(link, clock, { method, params, deadlineMs: workerCommandDeadlinesMs[method] });
    } catch (cause) {
      const silent = isSpaceError(cause, "link/closed") || isSpaceError(cause, "deadline/passed");
      throw silent ? new SpaceError("worker/unreachable", { workerId }, { cause }) : cause;
    }
  };
  return {
    activate: async (request) =>
      parseActivateAnswer(await call("worker/activate", activateRequestToJson(request))),
    snapshot: async (identity, { previousManifest, chain, goesOn = false, handsOver = false }, key) => {
      const whose = identityToJson(identity);
      const params = {
        identity: whose,
        previousManifest,
        chain,
        goesOn,
        handsOver,
        key: tenantKeyToJson(key),
      };
      return parseSnapshotAnswer(await call("worker/snapshot", params));
    },
    abortPause: async (identity) => {
      await call("worker/abort-pause", { identity: identityToJson(identity) });
    },
    inventory: async () => parseInventory(await call("worker/inventory", null)),
  };
}

/** The handlers with which a worker serves its own port on the link to the control plane. Parameters are read strictly. */
export function workerControlHandlers(control: WorkerControl): ReadonlyMap<WorkerCommand, RpcHandler> {
  return new Map<WorkerCommand, RpcHandler>([
    ["worker/activate", async (params) => control.activate(parseActivateRequest(params))],
    [
      "worker/snapshot",
      async (params) => {
        const names = ["identity", "previousManifest", "chain", "goesOn", "handsOver", "key"];
        const { identity, previousManifest, chain, goesOn, handsOver, key } = members(
          params,
          "params",
          names,
        );
        const follows = {
          goesOn: parseBoolean(goesOn, "goesOn"),
          handsOver: parseBoolean(handsOver, "handsOver"),
          previousManifest: parseNullableDigest(previousManifest),
          chain: parseDigest(chain),
        };
        const answer = await control.snapshot(parseIdentity(identity), follows, parseTenantKey(key));
        return { ...answer, manifest: manifestToJson(answer.manifest) };
      },
    ],
    ["worker/abort-pause", async (params) => control.abortPause(parseIdentityParameter(params))],
    ["worker/inventory", async () => inventoryToJson(await control.inventory())],
  ]);
}
