// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { nativeLauncherPath } from "@space/spaced-guest";
import { NamespaceSubstrate, type NamespaceSubstrateOptions } from "@space/substrate-namespace";
import { faultLanded } from "../src/fault-landed.ts";
import { eventually, GuestHost, type TestGuest, testUids } from "../src/guest-host.ts";
import { needsRoot } from "../src/needs-root.ts";

const mebibyte = 1024 * 1024;
const usual = 4;

/** The guests that are prepared now, by their launcher's word. */
async function spares({ substrate }: GuestHost) {
  const listing = await substrate.launchClient.list();
  return listing.filter(({ name }) => name.startsWith("spare-"));
}

function full(host: GuestHost): Promise<void> {
  return eventually("a full pool", async () => (await spares(host)).length >= usual);
}

/** Whether the bytes are anywhere in what the process can write to: its heap, stack and data. */
function holds(pid: number, wanted: Buffer): boolean {
  const memory = openSync(`/proc/${pid}/mem`, "r");
  try {
    const maps = readFileSync(`/proc/${pid}/maps`, "latin1").matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm);
    return [...maps].some(([, from = "", to = ""]) => {
      const start = Number.parseInt(from, 16);
      const bytes = Buffer.alloc(Number.parseInt(to, 16) - start);
      return bytes.subarray(0, readSync(memory, bytes, 0, bytes.length, start)).includes(wanted);
    });
  } finally {
    closeSync(memory);
  }
}

/** Says how many processes it could have at most. */
const forkAll = `
import os, signal
began = []
try:
    while len(began) < 200:
        child = os.fork()
        if child == 0: signal.pause()
        began.append(child)
except OSError: pass
print(len(began))
for child in began: os.kill(child, signal.SIGKILL)
`;

function groupOf({ evidence }: TestGuest): string {
  return evidence.cgroup;
}

const skip = needsRoot || (!existsSync(nativeLauncherPath) && "no C compiler built the native launcher");
const keeperProgram = join(import.meta.dirname, "../src/spare-keeper-main.ts");

describe("the warm pool", { skip, timeout: 60_000 }, () => {
  let host: GuestHost;
  before(async () => {
    host = await GuestHost.open("native");
  });
  after(() => host.close());
  const stop = (guests: readonly TestGuest[]) =>
    Promise.all(guests.map(({ activationId }) => host.substrate.stop(activationId)));

  it("never gives two sandboxes the same spare, nor one that a sandbox has had", async () => {
    const seen = { groups: new Set<string>(), processes: new Set<string>() };
    let fromPool = 0;
    for (let round = 0; round < 3; round += 1) {
      await full(host);
      const guests = await Promise.all(Array.from({ length: 6 }, () => host.start()));
      fromPool += guests.filter((guest) => groupOf(guest).startsWith("spare-")).length;
      for (const guest of guests) {
        seen.groups.add(groupOf(guest));
        seen.processes.add(`${guest.evidence.guest.pid} ${guest.evidence.guest.startTime}`);
        await guest.shell("test ! -e mark && touch mark");
      }
      await stop(guests);
    }
    faultLanded("guests came from the pool", fromPool - 2 * usual);
    assert.equal(seen.groups.size, 18);
    assert.equal(seen.processes.size, 18);
    await assert.rejects(
      host.substrate.launchClient.claim({
        spare: [...seen.groups].find((name) => name.startsWith("spare-")) ?? "",
        activationId: "act_again",
        secret: new Uint8Array(32),
        socketPath: join(host.folder, "s/again"),
        socketUid: 0,
        hostname: "again",
        bootId: "00000000-0000-4000-8000-000000000000",
        fileLimitBytes: 0,
      }),
    );
  });

  it("keeps spares without secret or socket, their own or another's", async () => {
    await full(host);
    const before = new Set((await spares(host)).map(({ name }) => name));
    const guests = await Promise.all([...before, "one more"].map(() => host.start()));
    const [guest] = guests;
    assert.ok(guest !== undefined && holds(guest.evidence.guest.pid, guest.secret), "the search finds it");
    await full(host);
    const waiting = await spares(host);
    assert.ok(
      !waiting.some(({ name }) => before.has(name)),
      "all were made since, by a launcher that had the secret",
    );
    for (const { hostPid, running } of waiting) {
      assert.equal(running, false);
      for (const { secret } of guests) assert.equal(holds(hostPid, secret), false);
    }
    const reachable = readdirSync(join(host.folder, "s")).filter((name) => !name.startsWith("launch"));
    assert.deepEqual(reachable.sort(), guests.map(({ activationId }) => activationId).sort());
    await stop(guests);
  });

  it("R-5: gives each its own boot id and randomness when it is claimed", async () => {
    await full(host);
    const guests = await Promise.all([host.start(), host.start()]);
    faultLanded("both came from the pool", guests.filter((g) => groupOf(g).startsWith("spare-")).length - 1);
    for (const source of ["boot_id", "uuid"]) {
      const said = guests.map((guest) => guest.shell(`cat /proc/sys/kernel/random/${source}`));
      const [one, two] = await Promise.all(said);
      assert.notEqual(one, two);
    }
    const drawn = await Promise.all(guests.map((guest) => guest.shell("head -c 32 /dev/urandom | base64")));
    assert.notEqual(drawn[0], drawn[1]);
    await stop(guests);
  });

  it("holds a claimed sandbox to its own limits, not to a spare's", async () => {
    await full(host);
    const [small, large] = await Promise.all([
      host.start({ processes: 40, memoryBytes: 96 * mebibyte }),
      host.start({ processes: 60, memoryBytes: 256 * mebibyte }),
    ]);
    assert.ok([small, large].every((guest) => groupOf(guest).startsWith("spare-")));
    const counts = await Promise.all([small, large].map((guest) => guest.run(["python3", "-c", forkAll])));
    const [few = 0, more = 0] = counts.map(({ stdout }) => Number(stdout));
    assert.ok(few > 16 && few < 40, `${few} of at most 40`);
    assert.ok(more > 40 && more < 60, `${more} of at most 60`);
    const hold = (megabytes: number): readonly string[] => [
      "python3",
      "-c",
      `x=bytearray(${megabytes}<<20);print(len(x)>>20)`,
    ];
    assert.equal((await large.run(hold(150))).stdout, "150\n");
    assert.deepEqual((await small.run(hold(150))).exit, { kind: "signalled", signal: 9 });
    await stop([small, large]);
  });
});

const controlGroup = `space-test-${process.pid}-killed`;

/** The processes and the groups of the worker that is killed. */
function leftOnHost(): readonly string[] {
  const processes = readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cgroup`, "utf8").includes(controlGroup);
    } catch {
      return false; // it has ended
    }
  });
  const groups = readdirSync("/sys/fs/cgroup", { recursive: true }).map(String);
  return [...processes, ...groups.filter((group) => group.endsWith(`/${controlGroup}`))];
}

describe("the warm pool of a worker that is killed", { skip, timeout: 60_000 }, () => {
  const moments = ["1 spares", "4 spares", "starting", "started"];
  for (const moment of moments) it(`leaves nothing: at "${moment}"`, () => killedAt(moment));
});

async function killedAt(moment: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "space-pool-"));
  chmodSync(folder, 0o711);
  const options = {
    stateDir: join(folder, "state"),
    socketDir: join(folder, "s"),
    controlGroup,
    firstUid: testUids.first,
    uidRanges: testUids.ranges,
    socketUid: 0,
    reserveBytes: mebibyte,
  };
  try {
    await killAt(moment, options);
    await openAfter(options);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function killAt(moment: string, options: NamespaceSubstrateOptions): Promise<void> {
  const keeper = spawn(process.execPath, [keeperProgram, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(keeper, "exit");
  for await (const line of createInterface({ input: keeper.stdout })) {
    if (line === moment) keeper.kill("SIGKILL");
  }
  assert.deepEqual(await ended, [null, "SIGKILL"]);
}

async function openAfter(options: NamespaceSubstrateOptions): Promise<void> {
  const activations = join(options.stateDir, "activations");
  const folders = readdirSync(activations);
  faultLanded("there was something to leave behind", Math.min(folders.length, leftOnHost().length));
  const next = await NamespaceSubstrate.open(options);
  let kept: ReadonlySet<string>;
  try {
    await next.sweep(new Set());
    const listed = (await next.launchClient.list()).map(({ name }) => name);
    kept = new Set([...listed, ...readdirSync(activations)]);
  } finally {
    await next.close("stopAll");
  }
  const reused = folders.filter((name) => kept.has(name));
  assert.deepEqual(reused, [], "no spare of the worker's before is kept, let alone used");
  assert.deepEqual(readdirSync(activations), []);
  await eventually("the end of all", () => leftOnHost().length === 0);
}
