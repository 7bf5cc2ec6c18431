// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { newSigningKey } from "@space/capability";
import { lineDigest, parseRecord, recordLine } from "./audit-record.ts";
import { LogFolder, signerOf, signing, writeMany } from "./log.fixture.ts";
import { lastCheckpointName } from "./log-writer.ts";
import { listSegments } from "./segments.ts";
import { type LogReport, verifyLog } from "./verify-log.ts";

const found = ({ problems }: LogReport): readonly string[] =>
  problems.map(({ kind, sequence }) => `${kind} ${sequence}`);

/** 30 events and what the log says itself, in one segment, checkpointed every 10 records. */
async function written(): Promise<LogFolder> {
  const folder = new LogFolder();
  await writeMany(folder.open({ checkpointRecords: 10 }), 30);
  return folder;
}

/** Writes the chain anew over the changed lines, as somebody who can write the files would. */
function relink(lines: readonly string[]): readonly string[] {
  const [first = ""] = lines;
  let previous = parseRecord(first)?.previous ?? assert.fail();
  return lines.map((line, index) => {
    const record = parseRecord(line) ?? assert.fail(line);
    const text = recordLine(index + 1, previous, { ...record, fields: JSON.stringify(record.fields) });
    previous = lineDigest(text);
    return text;
  });
}

const at = (lines: readonly string[], version: number): number => {
  const index = lines.findIndex((line) => line.includes(`"fields":{"version":${version}}`));
  assert.ok(index > 0);
  return index;
};

it("finds nothing in a log as it was written, and every record signed", async () => {
  using folder = await written();
  const report = folder.verify();
  assert.deepEqual(report.problems, []);
  assert.equal(report.lastSequence, folder.lines().length);
  assert.equal(report.records, report.lastSequence);
  assert.ok(report.checkpoints >= 3, `${report.checkpoints} checkpoints`);
  assert.equal(report.unsigned, 1, "only the last checkpoint itself");
});

it("says which record was altered", async () => {
  using folder = await written();
  let sequence = 0;
  folder.rewrite((lines) => {
    const index = at(lines, 17);
    sequence = index + 1;
    return lines.with(index, (lines[index] ?? "").replace('"version":17', '"version":71'));
  });
  assert.deepEqual(found(folder.verify()), [`altered ${sequence}`]);
});

it("says which records were removed", async () => {
  using folder = await written();
  let sequence = 0;
  folder.rewrite((lines) => {
    sequence = at(lines, 12) + 1;
    return lines.toSpliced(sequence - 1, 2);
  });
  const report = folder.verify();
  assert.deepEqual(found(report), [`removed ${sequence}`]);
  assert.match(
    report.problems[0]?.detail ?? "",
    new RegExp(`records ${sequence} to ${sequence + 1} are missing`),
  );
});

it("tells a record at another place, and one that is there twice, from one that is gone", async () => {
  using folder = await written();
  let sequence = 0;
  folder.rewrite((lines) => {
    const index = at(lines, 15);
    sequence = index + 1;
    return lines.toSpliced(index, 2, lines[index + 1] ?? "", lines[index] ?? "");
  });
  assert.deepEqual(found(folder.verify()), [`reordered ${sequence}`]);
  using twice = await written();
  twice.rewrite((lines) => lines.toSpliced(5, 0, lines[4] ?? ""));
  assert.deepEqual(found(twice.verify()), ["reordered 5"]);
});

it("says that the end was cut off, by the checkpoint beside the log or by one that was kept elsewhere", async () => {
  using folder = await written();
  const length = folder.lines().length;
  const kept = readFileSync(join(folder.path, lastCheckpointName), "utf8");
  folder.rewrite((lines) => lines.slice(0, -5));
  assert.deepEqual(found(folder.verify()), [`truncated ${length - 4}`]);
  const older = folder.lines().findLast((line) => line.includes('"audit/checkpoint"')) ?? "";
  writeFileSync(join(folder.path, lastCheckpointName), String(parseRecord(older)?.fields["token"]));
  assert.deepEqual(found(folder.verify()), [], "nothing is left to tell it by");
  assert.deepEqual(found(folder.verify(kept)), [`truncated ${length - 4}`]);
});

it("misses the checkpoint beside the log", async () => {
  using folder = await written();
  rmSync(join(folder.path, lastCheckpointName));
  assert.deepEqual(found(folder.verify()), ["removed 0"]);
});

it("finds segments whose files were swapped, and a segment of another log", async () => {
  using folder = new LogFolder();
  await writeMany(folder.open({ segmentBytes: 2_000 }), 60);
  const [first, second] = [folder.lines(0), folder.lines(1)];
  folder.rewrite(() => second, 0);
  folder.rewrite(() => first, 1);
  const swapped = found(folder.verify());
  assert.ok(
    swapped.some((problem) => problem.startsWith("reordered")),
    swapped.join(),
  );

  using other = new LogFolder();
  other.nowMs += 5_000;
  await writeMany(other.open({ segmentBytes: 2_000 }, signerOf(signing)), 60);
  folder.rewrite(() => first, 0);
  folder.rewrite(() => other.lines(1), 1);
  assert.notDeepEqual(found(folder.verify()), []);
});

it("finds a chain that was written anew, by the first checkpoint after the change", async () => {
  using folder = await written();
  let from = 0;
  folder.rewrite((lines) => {
    const index = at(lines, 17);
    const before = lines.slice(0, index).findLastIndex((line) => line.includes('"audit/checkpoint"'));
    from = before + 1;
    return relink(lines.with(index, (lines[index] ?? "").replace('"version":17', '"version":71')));
  });
  const report = folder.verify();
  assert.equal(found(report)[0], `altered ${from}`);
  assert.match(report.problems[0]?.detail ?? "", /not the ones that were signed/);
});

it("refuses a log that nobody signed, and one that another root's key signed", async () => {
  using stripped = new LogFolder();
  await writeMany(stripped.open(), 120);
  rmSync(join(stripped.path, lastCheckpointName));
  stripped.rewrite((lines) => relink(lines.filter((line) => !line.includes('"audit/checkpoint"'))));
  assert.deepEqual(found(stripped.verify()), ["signature 1"]);

  using foreign = new LogFolder();
  await writeMany(foreign.open({}, signerOf(newSigningKey(), newSigningKey())), 3);
  const problems = foreign.verify().problems.map(({ detail }) => detail);
  assert.ok(problems.includes("a bundle that the root has not signed"));
  assert.ok(problems.includes("a checkpoint refused by its key"));
});

it("takes a log that a process has just begun and not signed yet, and not one that was ever signed", async () => {
  using folder = new LogFolder();
  const log = folder.open({}, null);
  await writeMany(log, 20);
  const young = folder.verify();
  assert.deepEqual([young.problems, young.lastCheckpoint, young.unsigned], [[], null, 21]);
  const foreign = await written();
  using _foreign = foreign;
  const kept = readFileSync(join(foreign.path, lastCheckpointName), "utf8");
  assert.ok(found(folder.verify(kept)).includes("signature 1"), "it is signed: a checkpoint was kept");
});

it("refuses a checkpoint of another log", async () => {
  using folder = await written();
  using other = new LogFolder();
  await writeMany(other.open({}, signerOf(signing)), 3);
  const foreign = other.lines().findLast((line) => line.includes('"audit/checkpoint"')) ?? "";
  folder.rewrite((lines) => {
    const index = lines.findIndex((line) => line.includes('"audit/checkpoint"'));
    return relink(lines.with(index, foreign));
  });
  assert.ok(folder.verify().problems.some(({ kind }) => kind === "altered" || kind === "signature"));
});

it("reads what is no record, and lines without end, without giving up", async () => {
  using folder = await written();
  folder.rewrite((lines) => lines.with(9, "x".repeat(200_000)).with(14, "{}"));
  const kinds = found(folder.verify());
  assert.ok(kinds.includes("altered 10") && kinds.includes("altered 15"), kinds.join());
});

it("reads anew when the retention removes a segment while it reads: that is no alarm", async () => {
  using folder = new LogFolder();
  const limits = { segmentBytes: 4_000, totalBytes: 12_000 };
  await writeMany(folder.open(limits), 30);
  const stale = listSegments(folder.path);
  await writeMany(folder.open(limits), 100);
  assert.equal(existsSync(stale[0]?.path ?? ""), false, "the fault landed");
  let looks = 0;
  const report = verifyLog(folder.about, (directory) => {
    looks += 1;
    return looks === 1 ? stale : listSegments(directory);
  });
  assert.deepEqual([report.problems, looks], [[], 2]);
  assert.throws(() => verifyLog(folder.about, () => stale), { code: "ENOENT" }, "it does not go on for ever");
});
