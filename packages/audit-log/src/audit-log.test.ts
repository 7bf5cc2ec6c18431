// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { newSigningKey } from "@space/capability";
import { LogFolder, signerOf, signing, writeMany } from "./log.fixture.ts";
import { DirectoryLogFiles, type LogFiles, type SegmentFile } from "./segment-files.ts";
import { listSegments } from "./segments.ts";

it("writes one record a line with its event and fields, for the owner's eyes alone", async () => {
  using folder = new LogFolder();
  await writeMany(folder.open({}, null), 2);
  const events = folder.lines().map((line): unknown => JSON.parse(line));
  const shown = events.map((event) =>
    JSON.stringify(event).replace(/"previous":"[0-9a-f]{64}"/, '"previous":"…"'),
  );
  const log = "07".repeat(16);
  assert.deepEqual(shown, [
    `{"sequence":1,"previous":"…","atMs":1800000000000,"event":"audit/opened","fields":{"log":"${log}","process":"control-plane"}}`,
    '{"sequence":2,"previous":"…","atMs":1800000000000,"event":"keys/replaced","fields":{"version":1}}',
    '{"sequence":3,"previous":"…","atMs":1800000000000,"event":"keys/replaced","fields":{"version":2}}',
  ]);
  assert.equal(statSync(folder.segment(0)).mode & 0o777, 0o600);
});

it("never writes what is secret, or what has no class", async () => {
  using folder = new LogFolder();
  const log = folder.open();
  const wide = { version: 3, token: "spc_very-secret" };
  log.record("keys/replaced", wide);
  await log.close();
  const text = folder.lines().join("\n");
  assert.ok(text.includes('{"version":3,"token":"[secret]"}'));
  assert.ok(!text.includes("very-secret"));
});

it("goes on with the chain in the next segment, and in the next process", async () => {
  using folder = new LogFolder();
  await writeMany(folder.open({ segmentBytes: 2_000 }), 60);
  assert.ok(listSegments(folder.path).length >= 3);
  await writeMany(folder.open({ segmentBytes: 2_000 }), 60);
  const report = folder.verify();
  assert.deepEqual([report.problems, report.firstSequence, report.unsigned], [[], 1, 1]);
  assert.ok(report.lastSequence > 120);
});

it("a segment that was taken away is missed, from the middle and from the beginning", async () => {
  using folder = new LogFolder();
  await writeMany(folder.open({ segmentBytes: 2_000 }), 60);
  rmSync(folder.segment(1));
  const middle = folder.verify().problems[0];
  assert.deepEqual([middle?.kind, middle?.sequence], ["removed", Number(listedFirst(folder))]);
  using other = new LogFolder();
  await writeMany(other.open({ segmentBytes: 2_000 }), 60);
  rmSync(other.segment(0));
  assert.deepEqual([other.verify().problems[0]?.kind, other.verify().problems[0]?.sequence], ["removed", 1]);
});

/** The first sequence that is missing behind the first segment. */
function listedFirst(folder: LogFolder): number {
  return folder.lines(0).length + 1;
}

it("removes the oldest segments when all have too many bytes, says so, and is whole without them", async () => {
  using folder = new LogFolder();
  await writeMany(folder.open({ segmentBytes: 2_000, totalBytes: 8_000 }), 200);
  const segments = listSegments(folder.path);
  assert.ok(segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) < 14_000);
  const report = folder.verify();
  assert.ok(report.firstSequence > 100, `begins at ${report.firstSequence}`);
  assert.deepEqual(report.problems, []);
});

it("cuts what a crash tore off, marks it, and goes on", async () => {
  using folder = new LogFolder();
  await writeMany(folder.open(), 5);
  appendFileSync(folder.segment(0), '{"sequence":99,"prev');
  assert.equal(folder.verify().tornBytes, 20);
  await writeMany(folder.open(), 5);
  const report = folder.verify();
  assert.deepEqual([report.problems, report.recovered, report.tornBytes], [[], 1, 0]);
});

it("a process that is killed in the middle leaves a log that verifies", async () => {
  using folder = new LogFolder();
  const program = `
    import { AuditLog } from ${JSON.stringify(join(import.meta.dirname, "audit-log.ts"))};
    const clock = { wallMs: () => 1, monotonicMs: () => 1, after: (ms, f) => { const t = setTimeout(f, ms); return () => clearTimeout(t); } };
    const random = { bytes: (n) => new Uint8Array(n) };
    const log = AuditLog.open({ directory: ${JSON.stringify(folder.path)}, process: "control-plane" }, { clock, random });
    for (let version = 1; ; version++) {
      log.record("keys/replaced", { version });
      if (version % 50 === 0) await log.settled();
      if (version === 1000) process.stdout.write("on");
    }`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.ok(folder.lines().length >= 1_000, "the fault came after something was written");
  await writeMany(folder.open(), 3);
  assert.deepEqual(folder.verify().problems, []);
});

it("a process that ends writes what waits", async () => {
  using folder = new LogFolder();
  const program = `
    import { AuditLog } from ${JSON.stringify(join(import.meta.dirname, "audit-log.ts"))};
    const clock = { wallMs: () => 1, monotonicMs: () => 1, after: () => () => undefined };
    const log = AuditLog.open({ directory: ${JSON.stringify(folder.path)}, process: "control-plane" }, { clock, random: { bytes: (n) => new Uint8Array(n) } });
    log.record("keys/replaced", { version: 1 });
    await log.settled();
    log.record("keys/replaced", { version: 2 });
    process.on("exit", () => log.record("keys/replaced", { version: 3 }));
    setImmediate(() => { log.record("keys/replaced", { version: 4 }); process.exit(0); });`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    stdio: "inherit",
  });
  await once(child, "exit");
  const text = folder.lines().join("\n");
  for (const version of [1, 2, 4])
    assert.ok(text.includes(`{"version":${version}}`), `${version} in ${text}`);
  await writeMany(folder.open(), 1);
  assert.deepEqual(folder.verify().problems, []);
});

/** Files on a disk that takes only half of a write when it is full. */
class FullDisk implements LogFiles {
  readonly #files: DirectoryLogFiles;
  isFull = false;
  refused = 0;

  constructor(path: string) {
    this.#files = new DirectoryLogFiles(path);
  }

  async create(name: string): Promise<SegmentFile> {
    const file = await this.#files.create(name);
    const write = async (bytes: Uint8Array, position: number): Promise<void> => {
      if (!this.isFull) return file.write(bytes, position);
      this.refused += 1;
      await file.write(bytes.subarray(0, bytes.length / 2), position);
      throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
    };
    return {
      write,
      writeNow: (bytes, position) => file.writeNow(bytes, position),
      cutTo: (size) => file.cutTo(size),
      sync: () => file.sync(),
      close: () => file.close(),
    };
  }

  remove = (name: string): Promise<void> => this.#files.remove(name);
  replace = (name: string, text: string): Promise<void> => this.#files.replace(name, text);
}

it("a disk that is full costs events, counted in the log, and neither the chain nor the caller", async () => {
  using folder = new LogFolder();
  const disk = new FullDisk(folder.path);
  const log = folder.open({}, signerOf(newSigningKey()), disk);
  log.record("keys/replaced", { version: 1 });
  await log.settled();
  disk.isFull = true;
  for (const version of [2, 3, 4]) {
    log.record("keys/replaced", { version });
    await log.settled();
  }
  assert.equal(disk.refused, 3, "the fault landed");
  disk.isFull = false;
  log.record("keys/replaced", { version: 5 });
  await log.close();
  const text = folder.lines().join("\n");
  assert.ok(text.includes('"event":"audit/dropped","fields":{"count":3}'), text);
  assert.ok(text.includes('{"version":5}') && !text.includes('{"version":3}'));
  const report = folder.verify();
  assert.deepEqual([report.problems.filter(({ kind }) => kind !== "signature"), report.dropped], [[], 3]);
});

it("what waits has a bound, and what comes on top is counted", async () => {
  using folder = new LogFolder();
  const log = folder.open({ waitingBytes: 200 });
  for (let version = 0; version < 1_000; version += 1) log.record("keys/replaced", { version });
  await log.settled();
  log.record("keys/replaced", { version: 1_000 });
  await log.close();
  const report = folder.verify();
  assert.ok(report.dropped > 900 && report.records < 100, JSON.stringify(report));
  assert.equal(
    report.dropped + folder.lines().filter((line) => line.includes("keys/replaced")).length,
    1_001,
  );
});

it("signs again when time has passed and something was recorded, and only then", async () => {
  using folder = new LogFolder();
  const log = folder.open({ checkpointMs: 60_000 });
  log.record("keys/replaced", { version: 1 });
  await log.settled();
  const before = folder.verify().checkpoints;
  log.record("keys/replaced", { version: 2 });
  await log.settled();
  folder.pass(60_000);
  await log.settled();
  assert.equal(folder.verify().checkpoints, before + 1);
  folder.pass(60_000);
  await log.settled();
  assert.equal(folder.verify().checkpoints, before + 1);
  await log.close();
});

it("a signer that fails costs a checkpoint and no record", async () => {
  using folder = new LogFolder();
  const log = folder.open({}, () => {
    throw new TypeError("no key");
  });
  await writeMany(log, 5);
  const report = folder.verify();
  assert.deepEqual([report.records, report.checkpoints], [6, 0]);
});

it("is signed from its first records on, also when nothing was recorded before the key came", async () => {
  using folder = new LogFolder();
  const log = folder.open();
  await log.settled();
  log.record("keys/replaced", { version: 1 });
  await log.settled();
  const report = folder.verify();
  assert.deepEqual([report.problems, report.lastCheckpoint?.sequence, report.records], [[], 2, 4]);
  await log.close();
});

it("what a checkpoint that failed was to cover is signed at the end", async () => {
  using folder = new LogFolder();
  let isOut = true;
  const signer = signerOf(signing);
  const log = folder.open({}, (checkpoint) => {
    if (isOut) throw new TypeError("no key");
    return signer(checkpoint);
  });
  log.record("keys/replaced", { version: 1 });
  await log.settled();
  assert.equal(folder.verify().checkpoints, 0, "the fault landed");
  isOut = false;
  await log.close();
  assert.deepEqual([folder.verify().problems, folder.verify().unsigned], [[], 1]);
});

it("keeps the newest checkpoint beside the log", async () => {
  using folder = new LogFolder();
  await writeMany(folder.open(), 5);
  const kept = readFileSync(join(folder.path, "last-checkpoint"), "utf8").trim();
  assert.ok(folder.lines().some((line) => line.includes(kept)));
});
