// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Secret } from "@space/model";
import { type EmbeddedOptions, type EmbeddedSystem, startEmbedded } from "@space/space";

/** The options with which an E2B client reaches the system in URL mode. */
export interface ClientOptions {
  readonly apiUrl: string;
  readonly sandboxUrl: string;
  readonly apiKey: string;
  readonly domain: string;
}

export interface EmbeddedRig {
  readonly system: EmbeddedSystem;
  client(apiKey?: Secret<string>): ClientOptions;
  /** The sandbox's own token, as its owner is told when connecting. */
  accessToken(sandboxId: string, apiKey?: Secret<string>): Promise<string>;
  end(): Promise<void>;
}

/** A whole system in this process, its workers in theirs, on a throw-away directory and free ports. */
export async function startRig(options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedRig> {
  const data = mkdtempSync(join(tmpdir(), "space-rig-"));
  const free = { host: "127.0.0.1", port: 0 };
  const system = await startEmbedded({
    data,
    listen: free,
    tlsListen: free,
    domain: "space.localhost",
    workers: 1,
    substrate: "namespace",
    log: () => undefined,
    ...options,
  });
  return {
    system,
    client: (apiKey = system.apiKey) => ({
      apiUrl: system.apiUrl,
      sandboxUrl: system.apiUrl,
      apiKey: apiKey.reveal(),
      domain: system.domain,
    }),
    async accessToken(sandboxId, apiKey = system.apiKey) {
      const answer = await fetch(`${system.apiUrl}/v2/sandboxes/${sandboxId}/connect`, {
        method: "POST",
        headers: { "x-api-key": apiKey.reveal(), "content-type": "application/json" },
        body: "{}",
      });
      const { envdAccessToken } = (await answer.json()) as { envdAccessToken: string }; // cast: our own API's answer
      return envdAccessToken;
    },
    async end() {
      await system.stop();
      rmSync(data, { recursive: true, force: true });
    },
  };
}
