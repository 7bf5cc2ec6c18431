// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join, resolve } from "node:path";
import { syncFolderNow } from "@space/platform-linux/durable-file";
import { openDataDirectory } from "../data/data-directory.ts";
import { UsageError } from "../failure.ts";
import { systemClock } from "../host/system-clock.ts";
import { readWorkerConfig } from "../worker/worker-config.ts";
import { defaultDataFolder, readArguments, toStdout, type Write } from "./arguments.ts";

const options = { data: { type: "string" }, json: { type: "boolean", default: false } } as const;

/** `./space workers list`, and `./space workers enrol NAME` for one whose store is refused. */
export async function workers(args: readonly string[], write: Write = toStdout): Promise<number> {
  const { values, positionals } = readArguments(args, { options, allowPositionals: true });
  const data = resolve(values.data ?? defaultDataFolder);
  const [what, name, ...rest] = positionals;
  if (what === "list" && name === undefined) return list(data, values.json, write);
  if (what === "enrol" && name !== undefined && rest.length === 0) return enrol(data, name, write);
  throw new UsageError("say what to do: ./space workers list, or ./space workers enrol NAME");
}

function list(data: string, json: boolean, write: Write): number {
  const folder = join(data, "workers");
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /^[0-9]+$/.test(name)) : [];
  const found = names.map((name) => {
    const config = join(folder, name, "config.json");
    const workerId = existsSync(config) ? readWorkerConfig(config).workerId : null;
    return { name: `worker-${name}`, workerId, folder: join(folder, name) };
  });
  if (json) write(`${JSON.stringify({ workers: found }, undefined, 1)}\n`);
  else for (const worker of found) write(`${worker.name}  ${worker.workerId ?? "-"}  ${worker.folder}\n`);
  return 0;
}

/**
 * Sets the worker's store aside, so that at the next start it is made anew and names another worker. What the old one
 * ran is lost, and resumes elsewhere from its snapshots; the old store is kept beside the new one, for whoever wants to look.
 */
function enrol(data: string, name: string, write: Write): number {
  const [, index] = /^worker-([1-9][0-9]?)$/.exec(name) ?? [];
  if (index === undefined)
    throw new UsageError(`${name} is no worker's name; ./space workers list shows them`);
  if (!existsSync(join(data, "control", "root.pub")))
    throw new UsageError(`there is no installation in ${data}`);
  const directory = openDataDirectory(data); // nothing runs while its store is set aside
  try {
    const { root } = directory.worker(Number(index));
    if (!existsSync(join(root, "records.db"))) throw new UsageError(`${name} has no store in ${root}`);
    const aside = join(root, `store-set-aside-${systemClock.wallMs()}`);
    mkdirSync(aside, { mode: 0o700 });
    // The log first: without it the file is an older store, and is still refused.
    for (const file of ["records.db-wal", "records.db-shm", "records.db.pid", "records.db"]) {
      if (existsSync(join(root, file))) renameSync(join(root, file), join(aside, file));
    }
    syncFolderNow(aside);
    syncFolderNow(root);
    write(`${name}'s store is in ${aside}; at the next ./space up it starts as a new worker\n`);
    return 0;
  } finally {
    directory.release();
  }
}
