// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { resolve } from "node:path";
import type { SigningKeyRecord } from "@space/model";
import type { KeysAnswer } from "../admin/admin-service.ts";
import { askInstallation } from "../admin/open-admin.ts";
import type { SnapshotKeysView } from "../admin/snapshot-keys.ts";
import { UsageError } from "../failure.ts";
import { defaultDataFolder, toStdout, type Write } from "./arguments.ts";

interface Options {
  readonly data: string;
  readonly rootKey: string | null;
  readonly json: boolean;
  readonly words: readonly string[];
}

/**
 * `./space keys list|rotate|revoke KID`: the signing keys of an installation that runs, or of one that does not; and
 * `./space keys tenants|rotate-tenant TENANT|rewrap`: the keys that snapshots are sealed with.
 */
export async function keys(args: readonly string[], write: Write = toStdout): Promise<number> {
  const options = parse(args);
  const [what, kid, ...rest] = options.words;
  if (rest.length === 0 && kid === undefined && what === "list") return show(options, "keys/list", {}, write);
  if (rest.length === 0 && kid === undefined && what === "rotate")
    return show(options, "keys/rotate", { rootKey: options.rootKey }, write);
  if (rest.length === 0 && kid !== undefined && what === "revoke")
    return show(options, "keys/revoke", { kid, rootKey: options.rootKey }, write);
  if (rest.length === 0 && (await sealingKeys(options, [what, kid], write))) return 0;
  throw new UsageError(
    "say what to do: ./space keys list, rotate, or revoke KID; ./space keys tenants, rotate-tenant TENANT, or rewrap",
  );
}

async function sealingKeys(
  options: Options,
  [what, tenantId]: readonly [string | undefined, string | undefined],
  write: Write,
): Promise<boolean> {
  const isOne = what === "rotate-tenant" && tenantId !== undefined;
  if (!isOne && (tenantId !== undefined || (what !== "tenants" && what !== "rewrap"))) return false;
  if (options.rootKey !== null) throw new UsageError("--root-key is for signing keys");
  const answer = await askInstallation(options.data, `keys/${what}`, isOne ? { tenantId } : {});
  const view = answer as SnapshotKeysView; // cast: our own process's answer
  write(options.json ? `${JSON.stringify(view, undefined, 1)}\n` : sealingTable(view));
  return true;
}

function sealingTable({ tenants, wrappingKeys: [newest = "", ...older] }: SnapshotKeysView): string {
  const rows = tenants.flatMap(({ tenantId, keys: [current, ...before] }) => [
    `${tenantId}  ${current}  seals`,
    ...before.map((keyId) => `${tenantId}  ${keyId}  opens what it has sealed`),
  ]);
  const rest =
    older.length === 0 ? "" : `, and still ${older.length} older: ./space keys rewrap ends with one`;
  return `${rows.length === 0 ? "no tenant has paused anything yet" : rows.join("\n")}\n\nwrapped under ${newest}${rest}\n`;
}

async function show(options: Options, method: string, params: object, write: Write): Promise<number> {
  const answer = (await askInstallation(options.data, method, params)) as KeysAnswer; // cast: our own process's answer
  write(options.json ? `${JSON.stringify(answer, undefined, 1)}\n` : table(answer));
  return 0;
}

/** A key id may begin with a dash, so the words are told apart here. Throws {@link UsageError}. */
function parse(args: readonly string[]): Options {
  const words: string[] = [];
  let data = defaultDataFolder;
  let rootKey: string | null = null;
  let json = false;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? "";
    const value = (): string => {
      at += 1;
      const next = args[at];
      if (next === undefined) throw new UsageError(`${arg} needs a value`);
      return resolve(next);
    };
    if (arg === "--json") json = true;
    else if (arg === "--data") data = value();
    else if (arg === "--root-key") rootKey = value();
    else if (arg.startsWith("--")) throw new UsageError(`./space keys does not know ${arg}`);
    else words.push(arg);
  }
  return { data, rootKey, json, words };
}

const heads = ["KEY", "STATE", "ANNOUNCED", "SIGNS SINCE", "ENDED", "BUNDLES"];

function table(answer: KeysAnswer): string {
  const rows = [heads, ...answer.keys.map(row)];
  const widths = heads.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const lines = rows.map((cells) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const root = answer.rootKeyIsHere ? "in the data directory" : "elsewhere: rotation waits for it";
  const delivery = answer.isDelivered ? "every receiver holds it" : "receivers are still to confirm it";
  return `${lines.join("\n")}\n\nbundle ${answer.bundleVersion}: ${delivery}\nroot key ${answer.rootPublicKey}: ${root}\n`;
}

function row(key: SigningKeyRecord): readonly string[] {
  const isAsked = key.revokeAskedAtMs !== null && key.endedAtMs === null;
  return [
    key.kid,
    isAsked ? `${key.state}, to be revoked` : key.state,
    when(key.announcedAtMs),
    when(key.signingSinceMs),
    when(key.endedAtMs),
    `${key.announcedIn}-${key.endedIn === null ? "" : key.endedIn - 1}`,
  ];
}

function when(atMs: number | null): string {
  return atMs === null ? "-" : new Date(atMs).toISOString().slice(0, 19).concat("Z");
}
