// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { openOfflineKeys } from "@space/control-plane";
import { openControlStore } from "@space/store-sqlite";
import { openControlAudit } from "../data/control-audit.ts";
import { openDataDirectory, runDirectory } from "../data/data-directory.ts";
import { openInstallationKeys } from "../data/installation-keys.ts";
import { issuer } from "../data/issuer.ts";
import { openSnapshotStorage } from "../data/snapshot-storage.ts";
import { UsageError } from "../failure.ts";
import { systemClock } from "../host/system-clock.ts";
import { systemRandom } from "../host/system-random.ts";
import { answerAdmin } from "./admin-service.ts";
import { askAdmin } from "./admin-socket.ts";
import { SnapshotKeys } from "./snapshot-keys.ts";

/** Where a running installation listens for its operators. */
export function adminSocketPath(run: string): string {
  return join(run, "admin.sock");
}

/**
 * Asks the installation of a data directory: the one that runs, or, where none does, its files. Throws
 * {@link UsageError} where there is none, and what the answer throws.
 */
export async function askInstallation(data: string, method: string, params: unknown): Promise<unknown> {
  if (!existsSync(join(data, "control", "root.pub")))
    throw new UsageError(`there is no installation in ${data}; ./space up makes one`);
  const answer = await askAdmin(adminSocketPath(runDirectory(realpathSync(data))), method, params);
  return answer === undefined ? askFiles(data, method, params) : answer.value;
}

async function askFiles(data: string, method: string, params: unknown): Promise<unknown> {
  const directory = openDataDirectory(data);
  try {
    const store = openControlStore(directory.control, systemClock);
    const audit = openControlAudit(directory.root);
    try {
      const { rootKey, privateKeys } = openInstallationKeys(directory);
      const snapshotKeys = new SnapshotKeys({ ...(await openSnapshotStorage(directory)), audit });
      const ports = { ...store, rootKey, privateKeys, clock: systemClock, random: systemRandom, audit };
      const target = await openOfflineKeys(issuer, ports);
      audit.signWith(target.auditCheckpoint);
      return await answerAdmin({ ...target, rootKey, snapshotKeys, apiUrl: () => undefined }, method, params);
    } finally {
      await audit.close();
      store.close();
    }
  } finally {
    directory.release();
  }
}
