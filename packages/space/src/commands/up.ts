// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { lstatSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { isSpaceError } from "@space/model";
import { replaceFileNow } from "@space/platform-linux/durable-file";
import { requireRunsc } from "@space/substrate-gvisor";
import { type EmbeddedSystem, startEmbedded } from "../embedded/embedded-system.ts";
import { UsageError } from "../failure.ts";
import { requireWorkingCriu } from "../host/criu.ts";
import { requireHost } from "../host/host-fitness.ts";
import { tools } from "../host/runsc.ts";
import { checkout } from "../product.ts";
import { parseUpOptions, type UpOptions } from "./up-options.ts";

/** `./space up`: starts everything, says how to use it, and stops everything on Ctrl-C or SIGTERM. */
export async function up(args: readonly string[]): Promise<number> {
  const options = parseUpOptions(args);
  await requireHost("sandboxes need it");
  if (options.substrate === "gvisor") await requireRunsc(tools);
  if (options.memory === "criu") await requireWorkingCriu();
  const stopAsked = nextSignal();
  const { snapshots, directMoves, ...rest } = options;
  const system = await startEmbedded({
    ...rest,
    ...(snapshots && { snapshots }),
    ...(directMoves === undefined ? {} : { directMoves }),
    limits: { leaseMs: options.leaseSeconds * 1000 },
    log: (line) => process.stderr.write(`${line}\n`),
  });
  try {
    if (options.envFile !== undefined) writeEnvFile(options.envFile, system);
  } catch (error) {
    await system.stop();
    throw error;
  }
  process.stdout.write(introduction(system, options));
  await stopAsked;
  process.stdout.write(
    "\nstopping: running sandboxes are paused, their files kept (again to stop at once) ...\n",
  );
  await Promise.race([system.stop(), nextSignal().then(() => process.exit(1))]);
  process.stdout.write("stopped\n");
  return 0;
}

/** Resolves at the next SIGINT, SIGTERM or SIGHUP. */
function nextSignal(): Promise<void> {
  return new Promise((resolve) => {
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    const onSignal = (): void => {
      for (const signal of signals) process.off(signal, onSignal);
      resolve();
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}

/** The variables that E2B's SDKs and Node read, in the order that a person would set them. */
export function clientEnvironment(system: EmbeddedSystem): Readonly<Record<string, string>> {
  return {
    E2B_API_URL: system.apiUrl,
    E2B_SANDBOX_URL: system.apiUrl,
    E2B_API_KEY: system.apiKey.reveal(),
    E2B_DOMAIN: system.domain,
    NODE_EXTRA_CA_CERTS: system.edgeCaPath,
  };
}

/** The file holds the API key: mode 0600, and another file than one that somebody may have open. A device is written to. */
function writeEnvFile(path: string, system: EmbeddedSystem): void {
  const lines = Object.entries(clientEnvironment(system)).map(([name, value]) => `${name}=${value}\n`);
  try {
    const isFile = lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? true;
    if (isFile) replaceFileNow(resolve(path), lines.join(""));
    else writeFileSync(path, lines.join(""), { mode: 0o600 });
  } catch (error) {
    const cause = isSpaceError(error, "store/failed") ? error.cause : error;
    throw new UsageError(`cannot write ${path}: ${cause instanceof Error ? cause.message : ""}`, { cause });
  }
}

function introduction(system: EmbeddedSystem, options: UpOptions): string {
  const { envFile = "space.env" } = options;
  const where = envFile.startsWith("/") ? envFile : `./${envFile}`;
  const hint =
    options.envFile === undefined ? "start again with --env-file space.env, then" : "in another shell:";
  return `SPACE is up: ${options.workers} workers on the ${options.substrate} substrate, data in ${options.data}

  API and sandboxes by plain HTTP   ${system.apiUrl}
  API and sandboxes by HTTPS        https://api.${system.domain} and https://<port>-<id>.${system.domain}
  certificate authority             ${system.edgeCaPath}

To use it, ${hint}
  set -a; . ${where}; set +a      # E2B's SDKs read these
  node your-agent.mjs

With E2B_SANDBOX_URL set, clients use plain HTTP (URL mode). Unset E2B_API_URL and E2B_SANDBOX_URL for domain mode: then
*.${options.domain} must resolve to this machine; where it does not, Node clients can be started with
  NODE_OPTIONS="--require ${checkout}/packages/space/preload/resolve-domain.cjs"

Ctrl-C stops everything.
`;
}
