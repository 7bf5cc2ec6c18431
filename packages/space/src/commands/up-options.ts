// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { isIP } from "node:net";
import { defaultLeaseSeconds, longestLeaseSeconds, shortestLeaseSeconds } from "@space/model";
import { UsageError } from "../failure.ts";
import type { WorkerConfig } from "../worker/worker-config.ts";
import { defaultDataFolder, readArguments } from "./arguments.ts";

/** Host and port as given to `--listen`. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export interface UpOptions {
  readonly data: string;
  readonly listen: ListenAddress;
  readonly tlsListen: ListenAddress;
  readonly domain: string;
  readonly workers: number;
  readonly substrate: WorkerConfig["substrate"];
  readonly envFile: string | undefined;
  readonly expose: boolean;
  /** the term of a worker's lease. */
  readonly leaseSeconds: number;
}

const workersLimit = 16;
const flags = {
  data: { type: "string" },
  listen: { type: "string", default: "127.0.0.1:7680" },
  "tls-listen": { type: "string", default: "127.0.0.1:7643" },
  domain: { type: "string", default: "space.localhost" },
  workers: { type: "string", default: "2" },
  substrate: { type: "string", default: "namespace" },
  "env-file": { type: "string" },
  lease: { type: "string", default: String(defaultLeaseSeconds) },
  expose: { type: "boolean", default: false },
} as const;

/** Reads the arguments of `up`. Throws {@link UsageError} naming the flag to change. */
export function parseUpOptions(args: readonly string[]): UpOptions {
  const values = readArguments(args, { options: flags, allowPositionals: false }).values;
  const options: UpOptions = {
    data: values.data ?? defaultDataFolder,
    listen: parseListen("--listen", values.listen),
    tlsListen: parseListen("--tls-listen", values["tls-listen"]),
    domain: parseDomain(values.domain),
    workers: parseWorkers(values.workers),
    substrate: parseSubstrate(values.substrate),
    envFile: values["env-file"],
    expose: values.expose,
    leaseSeconds: parseLease(values.lease),
  };
  for (const [flag, { host }] of [
    ["--listen", options.listen],
    ["--tls-listen", options.tlsListen],
  ] as const) {
    if (!isLoopback(host) && !options.expose) {
      throw new UsageError(
        `${flag} ${host} can be reached from other machines: whoever reaches it may try API keys and sandbox tokens, and plain HTTP shows both to the network. Add --expose if that is what you want`,
      );
    }
  }
  return options;
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** `HOST:PORT` or `[V6]:PORT`; port 0 lets the system choose. */
export function parseListen(flag: string, text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):([0-9]{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535)
    throw new UsageError(`${flag} must be HOST:PORT, such as 127.0.0.1:7680`);
  return { host, port };
}

function parseDomain(text: string): string {
  const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
  if (text.length <= 150 && new RegExp(`^${label}(?:\\.${label})*$`).test(text)) return text;
  throw new UsageError("--domain must be a DNS name in lower case, without a port, such as space.localhost");
}

function parseWorkers(text: string): number {
  const workers = Number(text);
  if (Number.isInteger(workers) && workers >= 1 && workers <= workersLimit) return workers;
  throw new UsageError(`--workers must be a whole number from 1 to ${workersLimit}`);
}

/** */
function parseLease(text: string): number {
  const seconds = Number(text);
  const isWithin = seconds >= shortestLeaseSeconds && seconds <= longestLeaseSeconds;
  if (Number.isInteger(seconds) && isWithin) return seconds;
  throw new UsageError(
    `--lease must be whole seconds from ${shortestLeaseSeconds} to ${longestLeaseSeconds}`,
  );
}

function parseSubstrate(text: string): WorkerConfig["substrate"] {
  if (text === "namespace" || text === "gvisor") return text;
  throw new UsageError(
    `--substrate ${JSON.stringify(text)} is not built in; this version has: namespace, gvisor`,
  );
}
