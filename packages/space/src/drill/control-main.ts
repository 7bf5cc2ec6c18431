// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// Entry point of a control plane in a process of its own, with its workers below it: a drill can stop it alone.

import { parseSandboxId, Secret, type WantedAccess } from "@space/model";
import { startEmbedded } from "../embedded/embedded-system.ts";
import type { AskedRoute, ControlConfig, ControlReady } from "./control-process.ts";
import { drillOptions } from "./drill-system.ts";
import { ProcessChannel } from "./process-channel.ts";

const channel = new ProcessChannel(
  { on: (event, listener) => process.on(event, listener), send: (message) => process.send?.(message) },
  {
    start: async (config) => {
      started ??= start(config as ControlConfig); // cast: our own drill's word
      return (await started).ready;
    },
    resolve: async (asked) => (await running()).resolve(asked as AskedRoute), // cast: our own drill's word
    attach: async () => {
      await (await running()).attach();
    },
  },
);
let started: ReturnType<typeof start> | undefined;

process.on("disconnect", () => {
  const stopped = started?.then(({ stop }) => stop()) ?? Promise.resolve();
  stopped.then(
    () => process.exit(0),
    () => process.exit(1),
  );
});

function running(): ReturnType<typeof start> {
  return started ?? Promise.reject(new TypeError("not started"));
}

async function start({ data, workers }: ControlConfig) {
  const system = await startEmbedded({
    ...drillOptions(data),
    workers,
    log: (line) => process.stderr.write(`${line}\n`),
  });
  const ready: ControlReady = {
    apiUrl: system.apiUrl,
    apiKey: system.apiKey.reveal(),
    workerIds: system.workerIds,
    workerPids: [...system.workerPids().values()],
    meshPort: system.meshPort,
  };
  return {
    ready,
    stop: () => system.stop(),
    attach: () =>
      system.attachGateway({
        replaceKeys: async (bundle) => {
          await channel.ask("replaceKeys", bundle);
        },
      }),
    resolve: ({ sandboxId, token, wanted, presenter }: AskedRoute) =>
      system.routes.resolve({
        sandboxId: parseSandboxId(sandboxId),
        credential: { kind: "access-token", token: new Secret(token) },
        wanted: wanted satisfies WantedAccess,
        presenter,
      }),
  };
}
