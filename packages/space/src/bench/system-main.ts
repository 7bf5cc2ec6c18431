// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of a benchmarked SPACE: control plane and gateway in this process, workers below it, as `space up` has them.

import { join } from "node:path";
import { parseSandboxId, type RouteEntry, Secret } from "@space/model";
import * as v from "valibot";
import { presentToWorker } from "../demo/worker-probe.ts";
import { type EmbeddedSystem, startEmbedded } from "../embedded/embedded-system.ts";
import { systemRandom } from "../host/system-random.ts";
import { serveBenchmark } from "./bench-child.ts";

const configSchema = v.strictObject({
  data: v.string(),
  workers: v.pipe(v.number(), v.integer(), v.minValue(1)),
  checked: v.boolean(),
  substrate: v.picklist(["namespace", "gvisor"]),
  memory: v.picklist(["frozen", "criu"]),
});

const proofSchema = v.strictObject({ sandboxId: v.string(), accessToken: v.string(), path: v.string() });

serveBenchmark(async (given) => {
  const { checked, ...config } = v.parse(configSchema, given);
  const ephemeral = { host: "127.0.0.1", port: 0 };
  const system = await startEmbedded({
    ...config,
    listen: ephemeral,
    tlsListen: ephemeral,
    domain: "space.localhost",
    log: (line) => process.stderr.write(`${line}\n`),
    ...(checked ? {} : { workerProgram: join(import.meta.dirname, "unchecked-worker-main.ts") }),
  });
  const { apiUrl, apiKey, workerIds } = system;
  return {
    ready: { apiUrl, apiKey: apiKey.reveal(), workerIds },
    answer: (request) => presentBoth(system, v.parse(proofSchema, request)),
    stop: () => system.stop(),
  };
});

/** What the worker itself says to the capability that was signed, and to the same with its signature altered. */
async function presentBoth(
  system: EmbeddedSystem,
  { sandboxId: id, accessToken, path }: v.InferOutput<typeof proofSchema>,
): Promise<unknown> {
  const sandboxId = parseSandboxId(id);
  const found = await system.routes.resolve({
    sandboxId,
    credential: { kind: "access-token", token: new Secret(accessToken) },
    wanted: { purpose: "control", scope: "files:read" },
    presenter: system.presenter,
  });
  if (found.kind !== "entry") throw new Error(`no route: ${found.kind}`);
  const { entry } = found;
  const present = async (capability: string) =>
    presentToWorker(
      await system.dialWorker(entry.route.identity.placement.workerId),
      { sandbox: sandboxId, capability, target: { purpose: "control" }, path },
      systemRandom,
    );
  return { signed: await present(entry.capability), altered: await present(alter(entry)) };
}

/** Another character within the signature: as long, canonical, and signed by nobody. */
function alter({ capability }: RouteEntry): string {
  const at = capability.length - 10;
  return `${capability.slice(0, at)}${capability[at] === "A" ? "B" : "A"}${capability.slice(at + 1)}`;
}
