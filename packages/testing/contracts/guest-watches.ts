// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import type { GuestWatch, WatchEvent, WatchOptions } from "@space/spaced-guest";
import { asUser, eventually, type TestGuest } from "../src/guest-host.ts";
import { guestError } from "./guest-files.ts";

class Watched {
  readonly events: WatchEvent[] = [];
  overflows = 0;
  lost = false;
  watch: GuestWatch | undefined;

  static async on(guest: TestGuest, path: string, options: WatchOptions = {}): Promise<Watched> {
    const watched = new Watched();
    const connection = await guest.connect();
    watched.watch = await connection.watch(path, options, {
      onEvent: (event) => watched.events.push(event),
      onOverflow: () => {
        watched.overflows += 1;
      },
      onLost: () => {
        watched.lost = true;
      },
    });
    return watched;
  }

  get told(): string[] {
    return this.events.map(({ kind, name }) => `${kind} ${name}`);
  }

  has(...told: string[]): Promise<void> {
    return eventually(told.join(", "), async () => told.every((line) => this.told.includes(line)));
  }
}

/** Watching folders, where the launcher can. */
export function watchCases(guest: () => TestGuest, supported: boolean): void {
  const skip = !supported;
  const folder = (name: string): Promise<string> => madeFolder(guest(), name);

  it("tells what changes in a folder, by kind and name, in order", { skip }, async () => {
    const path = await folder("watch1");
    const watched = await Watched.on(guest(), `${path}/`, { withEntries: true });
    await guest().shell(
      `cd ${path}; echo one > a; chmod 600 a; mv a b; mkdir d; echo hidden > d/x; rm b; rmdir d 2>/dev/null; true`,
    );
    await watched.has("removed b");
    const kinds = watched.told.filter((line) => !line.startsWith("written"));
    assert.deepEqual(kinds, [
      "created a",
      "mode-changed a",
      "renamed a",
      "created b",
      "created d",
      "removed b",
    ]);
    assert.ok(watched.told.includes("written a"));
    const changed = watched.events.find(({ kind }) => kind === "mode-changed");
    assert.ok(changed?.entry === undefined || changed.entry.path === `${path}/a`);
    const made = watched.events.find(({ name }) => name === "d");
    assert.deepEqual(
      [made?.entry?.type, made?.entry?.path, made?.entry?.uid],
      ["directory", `${path}/d`, 1000],
    );
    assert.equal(watched.events.at(-1)?.entry, undefined);
    watched.watch?.destroy();
  });

  it("takes up new folders below, and what they held already", { skip }, async () => {
    const path = await folder("watch2/old");
    const watched = await Watched.on(guest(), "/tmp/watch2", { recursive: true });
    await guest().shell(`mkdir -p ${path}/n1/n2/n3; echo deep > ${path}/n1/n2/n3/file`);
    await watched.has(
      "created old/n1",
      "created old/n1/n2",
      "created old/n1/n2/n3",
      "created old/n1/n2/n3/file",
    );
    await guest().shell(`echo more >> ${path}/n1/n2/n3/file`);
    await watched.has("written old/n1/n2/n3/file");
    await guest().shell(
      `mv ${path}/n1 /tmp/watch2/moved; echo x > /tmp/watch2/moved/n2/late; rm -r /tmp/watch2/moved`,
    );
    await watched.has(
      "renamed old/n1",
      "created moved",
      "created moved/n2/late",
      "removed moved/n2",
      "removed moved",
    );
    assert.ok(!watched.told.includes("created old/n1/n2/late"));
    watched.watch?.destroy();
  });

  it("does not follow symlinks out of the folder", { skip }, async () => {
    const path = await folder("watch3");
    await guest().shell(`mkdir -p /tmp/outside; ln -s /tmp/outside ${path}/link`);
    const watched = await Watched.on(guest(), path, { recursive: true });
    await guest().shell(
      `ln -s /tmp/outside ${path}/late; echo x > /tmp/outside/file; echo y > ${path}/inside`,
    );
    await watched.has("created inside");
    assert.deepEqual(
      watched.told.filter((line) => line.includes("file")),
      [],
    );
    watched.watch?.destroy();
  });

  it("tells the end of the folder itself", { skip }, async () => {
    const path = await folder("watch4");
    const watched = await Watched.on(guest(), path);
    await guest().shell(`rmdir ${path}`);
    await watched.has("removed .");
    watched.watch?.destroy();
  });

  it("says what cannot be watched, and stays usable for nobody else's harm", { skip }, async () => {
    await guest().shell("echo x > /tmp/file");
    const refuse = (path: string, code: string): Promise<void> =>
      assert.rejects(Watched.on(guest(), path), guestError(code));
    await refuse("/tmp/none", "ENOENT");
    await refuse("/tmp/file", "ENOTDIR");
    await guest().using((connection) => connection.stat("/"));
  });

  it("says that it cannot watch", { skip: supported }, async () => {
    await assert.rejects(Watched.on(guest(), "/tmp"), guestError("ENOSYS"));
  });
}

async function madeFolder(guest: TestGuest, name: string): Promise<string> {
  await guest.shell(`mkdir -p /tmp/${name}`);
  return `/tmp/${name}`;
}

/** As many watches and events as a guest may have. */
export function crowdedWatchCases(guest: () => TestGuest, supported: boolean): void {
  const skip = !supported;
  const folder = (name: string): Promise<string> => madeFolder(guest(), name);

  it("says that events were lost when the host does not read them, and goes on", { skip }, async () => {
    const path = await folder("watch5");
    const watched = await Watched.on(guest(), path);
    watched.watch?.pause();
    const many = 'for (1..30000) { open F, ">f$_"; close F }';
    await guest().shell(`cd ${path} && perl -e '${many}'`);
    watched.watch?.resume();
    await eventually("an overflow", async () => watched.overflows > 0);
    const before = watched.events.length;
    assert.ok(before < 60_000, `${before} events`);
    await guest().shell(`echo > ${path}/after`);
    await watched.has("created after");
    await guest().shell(`rm -r ${path}`);
    watched.watch?.destroy();
  });

  it("ends with its connection, and holds up nobody", { skip }, async () => {
    const path = await folder("watch6");
    for (let round = 0; round < 40; round += 1) {
      // In all many more than the kernel gives one user at a time, and than a guest may have processes.
      const all = await Promise.all(Array.from({ length: 20 }, () => Watched.on(guest(), path)));
      await guest().shell(`echo > ${path}/x${round}`);
      await Promise.all(all.map((watched) => watched.has(`created x${round}`)));
      for (const { watch } of all) watch?.destroy();
      assert.ok(all.every(({ lost }) => lost));
    }
    await guest().run(["true"], asUser);
  });
}
