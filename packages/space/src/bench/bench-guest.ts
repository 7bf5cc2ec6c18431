// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type ActivationId,
  type EndpointEvidence,
  type ExecutionLimits,
  newActivationId,
  newSandboxId,
  Secret,
} from "@space/model";
import { GuestConnection } from "@space/spaced-guest";
import { NamespaceSubstrate } from "@space/substrate-namespace";
import { runRoot } from "../data/run-root.ts";
import { systemRandom } from "../host/system-random.ts";
import type { Ending } from "./ending.ts";

const secretBytes = 32;
const mebibyte = 1024 * 1024;

/** As the control plane's own. */
const limits: ExecutionLimits = {
  memoryBytes: 1024 * mebibyte,
  cpus: 2,
  processes: 1024,
  diskBytes: 4096 * mebibyte,
};

/** Above the user ids of every installation, and apart for runs that happen at once. */
const rangeSize = 65_536;
const rangesOfOne = 8;
const firstUid = 0xfc00_0000 + (process.pid % 60) * 2 * rangesOfOne * rangeSize;

/** One guest without a worker: what is measured against it reaches it by its socket. */
export interface BenchGuest {
  readonly activationId: ActivationId;
  readonly sandboxId: string;
  readonly secret: Uint8Array;
  readonly evidence: EndpointEvidence;
}

/** A substrate of the run's own: `cold` makes each guest when it is asked for, `prepared` keeps some ready as workers do. */
export function openBenchSubstrate(
  folder: string,
  kind: "cold" | "prepared",
  ending: Ending,
): Promise<NamespaceSubstrate> {
  const root = join(folder, kind);
  mkdirSync(root, { mode: 0o711 });
  chmodSync(root, 0o711);
  const socketDir = join(runRoot(), `bench-${process.pid}-${kind}`); // where a worker's would be
  ending.add(() => rmSync(socketDir, { recursive: true, force: true }));
  return NamespaceSubstrate.open({
    stateDir: join(root, "state"),
    socketDir,
    controlGroup: `space-bench-${process.pid}-${kind}`,
    firstUid: kind === "cold" ? firstUid : firstUid + rangesOfOne * rangeSize,
    uidRanges: rangesOfOne,
    socketUid: 0,
    reserveBytes: mebibyte,
    ...(kind === "cold" ? { spareGuests: { least: 0, most: 0 } } : {}),
  });
}

export async function startGuest(substrate: NamespaceSubstrate): Promise<BenchGuest> {
  const activationId = newActivationId(systemRandom);
  const sandboxId = newSandboxId(systemRandom);
  const secret = Uint8Array.from(systemRandom.bytes(secretBytes));
  const { evidence } = await substrate.start({
    sandboxId,
    activationId,
    activationSecret: new Secret(secret),
    hostname: "bench",
    limits,
  });
  return { activationId, sandboxId, secret, evidence };
}

export function connectTo({ activationId, secret, evidence }: BenchGuest): Promise<GuestConnection> {
  return GuestConnection.connect(evidence.socketPath, { activationId, secret });
}

const guestUser = { uid: 1000, gid: 1000 } as const;

export async function writeInGuest(guest: BenchGuest, path: string, content: Uint8Array): Promise<void> {
  const connection = await connectTo(guest);
  await connection.writeFile(path, guestUser, content);
  connection.destroy();
}

/** Runs `/bin/true` over a connection that was opened before, which it uses up. Resolves when its end has come. */
export function spawnTrue(connection: GuestConnection): Promise<void> {
  return new Promise((resolve, reject) => {
    const onExit = (exit: { readonly kind: string; readonly code?: number }): void => {
      if (exit.kind === "exited" && exit.code === 0) resolve();
      else reject(new Error(`true ended with ${JSON.stringify(exit)}`));
    };
    const request = {
      argv: ["/bin/true"],
      env: { PATH: "/usr/bin:/bin", HOME: "/home/user" },
      cwd: "/home/user",
    };
    connection.spawn({ ...request, ...guestUser }, { onExit, onLost: reject }).catch(reject);
  });
}
