// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import type { Clock } from "@space/model";
import { type GuestConnection, GuestError, type GuestPool } from "@space/spaced-guest";
import { EnvdError } from "./envd-error.ts";

/** A user of the guest, as its own files say. */
export interface GuestUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** Supplementary groups, the primary one included. */
  readonly groups: readonly number[];
}

/** Files beyond this are not read: a guest cannot make the bridge hold more. */
const fileLimitBytes = 1024 * 1024;
const entryLimit = 10_000;
/** The kernel's limit of supplementary groups is far above; this bounds one spawn frame. */
const groupLimit = 1024;
/** How long what was read is believed. */
const believedMs = 5_000;

/** One reading of the guest's users and groups. */
export interface UserTable {
  readonly users: ReadonlyMap<string, GuestUser>;
  readonly userNames: ReadonlyMap<number, string>;
  readonly groupNames: ReadonlyMap<number, string>;
}

/** Reads passwd(5) and group(5) text. Lines that are not of their form are skipped: the guest writes what it likes. */
export function parseUsers(passwd: string, group: string): UserTable {
  const groupNames = new Map<number, string>();
  const memberships = new Map<string, number[]>();
  for (const [name = "", , gidText, members = ""] of records(group)) {
    const gid = parseId(gidText);
    if (gid === undefined || name === "") continue;
    if (!groupNames.has(gid)) groupNames.set(gid, name);
    for (const member of members.split(",")) {
      const gids = memberships.get(member);
      if (gids === undefined) memberships.set(member, [gid]);
      else if (gids.length < groupLimit) gids.push(gid);
    }
  }
  const users = new Map<string, GuestUser>();
  const userNames = new Map<number, string>();
  for (const [name = "", , uidText, gidText, , home = ""] of records(passwd)) {
    const uid = parseId(uidText);
    const gid = parseId(gidText);
    if (uid === undefined || gid === undefined || name === "" || users.has(name)) continue;
    const groups = [...new Set([gid, ...(memberships.get(name) ?? [])])];
    users.set(name, { name, uid, gid, home: home.startsWith("/") ? home : "/", groups });
    if (!userNames.has(uid)) userNames.set(uid, name);
  }
  return { users, userNames, groupNames };
}

function* records(text: string): Generator<string[]> {
  let left = entryLimit;
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    if (left === 0) return;
    left -= 1;
    yield line.split(":");
  }
}

function parseId(text: string | undefined): number | undefined {
  if (text === undefined || !/^[0-9]{1,10}$/.test(text)) return undefined;
  const id = Number(text);
  return id < 0xffff_ffff ? id : undefined;
}

/**
 * The users of one guest, read from its own /etc/passwd and /etc/group and believed for a short while. A name that is
 * not among them is looked for again before it is refused, so that a user made a moment ago is found.
 */
export class GuestUsers {
  readonly #clock: Clock;
  #pool: GuestPool;
  #table: UserTable | undefined;
  #readAtMs = 0;
  #reading: Promise<UserTable> | undefined;

  constructor(pool: GuestPool, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  /** The guest goes on behind other connections. */
  replacePool(pool: GuestPool): void {
    this.#pool = pool;
    this.forget();
  }

  /** What was read is no longer believed: a process of root's has ended, which may have changed it (setuid is inert in a guest). */
  forget(): void {
    this.#table = undefined;
  }

  /** Rejects with `unauthenticated` for a user that the guest does not have. */
  async find(name: string): Promise<GuestUser> {
    const believed = this.#believed()?.users.get(name);
    if (believed !== undefined) return believed;
    const user = (await this.#read()).users.get(name);
    if (user === undefined) throw new EnvdError("unauthenticated", `invalid username: '${name}'`);
    return user;
  }

  async table(): Promise<UserTable> {
    return this.#believed() ?? this.#read();
  }

  #believed(): UserTable | undefined {
    return this.#clock.monotonicMs() - this.#readAtMs < believedMs ? this.#table : undefined;
  }

  /** Concurrent readings are one. */
  #read(): Promise<UserTable> {
    if (this.#reading !== undefined) return this.#reading;
    const startedAtMs = this.#clock.monotonicMs();
    const reading = readTable(this.#pool)
      .then((table) => {
        this.#table = table;
        this.#readAtMs = startedAtMs;
        return table;
      })
      .finally(() => {
        this.#reading = undefined;
      });
    this.#reading = reading;
    return reading;
  }
}

function readTable(pool: GuestPool): Promise<UserTable> {
  return pool.use(async (connection) =>
    parseUsers(await readText(connection, "/etc/passwd"), await readText(connection, "/etc/group")),
  );
}

/** A file that is missing or cannot be read counts as empty: it is the guest's own business. */
async function readText(connection: GuestConnection, path: string): Promise<string> {
  try {
    return (await connection.readFile(path, fileLimitBytes)).toString("utf8");
  } catch (error) {
    if (error instanceof GuestError) return "";
    throw error;
  }
}
