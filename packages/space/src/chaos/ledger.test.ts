// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { contentOf, filesKept, Ledger, type Seen, type SeenFile, type Writing } from "./ledger.ts";

/** A sandbox that keeps what it is told to, and can be taken back to an earlier state. */
class Disk {
  files = new Map<number, Buffer>();
  head = 0;

  write(writing: Writing): void {
    this.files.set(writing.n, contentOf(writing));
    this.head = writing.n;
    for (const n of [...this.files.keys()].sort((a, b) => a - b).slice(0, -filesKept)) this.files.delete(n);
  }

  copy(): Disk {
    const copy = new Disk();
    copy.files = new Map(this.files);
    copy.head = this.head;
    return copy;
  }

  seen(): Seen {
    return { files: [...this.files].map(([n, content]) => seenFile(n, content)), head: this.head };
  }
}

function seenFile(n: number, content: Buffer): SeenFile {
  return {
    n,
    bytes: content.length,
    sha256: createHash("sha256").update(content).digest("hex"),
    firstLine: content.toString("utf8").split("\n")[0] ?? "",
  };
}

function written(ledger: Ledger, disk: Disk, times: number): void {
  for (let time = 0; time < times; time += 1) {
    const writing = ledger.begin(1);
    disk.write(writing);
    ledger.acknowledge(writing);
  }
}

function kinds(ledger: Ledger, disk: Disk): readonly string[] {
  return ledger.check(disk.seen()).map(({ kind }) => kind);
}

function scene(): { ledger: Ledger; disk: Disk } {
  return { ledger: new Ledger("run", "sbx_a"), disk: new Disk() };
}

test("what was written is right, also when old files were removed and some ends were not told", () => {
  const { ledger, disk } = scene();
  assert.deepEqual(kinds(ledger, disk), []);
  written(ledger, disk, 40);
  assert.deepEqual(kinds(ledger, disk), []);
  ledger.begin(1); // never came there
  assert.deepEqual(kinds(ledger, disk), []);
  const unknown = ledger.begin(1);
  disk.files.set(unknown.n, contentOf(unknown)); // cut before it removed the oldest
  assert.deepEqual(kinds(ledger, disk), []);
  written(ledger, disk, 3);
  assert.deepEqual(kinds(ledger, disk), []);
});

test("an acknowledged write that is missing is lost", () => {
  for (const gone of [40, 33, 26]) {
    const { ledger, disk } = scene();
    written(ledger, disk, 40);
    disk.files.delete(gone);
    assert.deepEqual(kinds(ledger, disk), ["lost file"], String(gone));
  }
});

test("a write that nobody acknowledged, and that was seen, is lost when it goes", () => {
  const { ledger, disk } = scene();
  const writing = ledger.begin(1);
  disk.write(writing);
  assert.deepEqual(kinds(ledger, disk), []);
  disk.files.delete(writing.n);
  assert.deepEqual(kinds(ledger, disk), ["lost file"]);
});

test("a file of another sandbox is a wrong delivery, and so is one that was never written", () => {
  const { ledger, disk } = scene();
  written(ledger, disk, 3);
  const other = new Ledger("run", "sbx_b");
  disk.files.set(2, contentOf({ ...other.begin(1), n: 2 }));
  assert.deepEqual(kinds(ledger, disk), ["wrong delivery"]);
  const stranger = scene();
  stranger.disk.files.set(9, contentOf({ run: "run", owner: "sbx_a", n: 9, generation: 1 }));
  assert.deepEqual(kinds(stranger.ledger, stranger.disk), ["wrong delivery"]);
});

test("a file that is cut, or of which a part is another, is torn", () => {
  for (const harm of [
    (content: Buffer) => content.subarray(0, -1),
    (content: Buffer) => Buffer.concat([content.subarray(0, -1), Buffer.from("x")]),
    () => Buffer.alloc(0),
  ]) {
    const { ledger, disk } = scene();
    written(ledger, disk, 5);
    disk.files.set(5, harm(disk.files.get(5) ?? Buffer.alloc(0)));
    assert.deepEqual(kinds(ledger, disk), ["torn file"]);
  }
});

test("files of two states at once are found: a removed one is back, or the head is another's", () => {
  const { ledger, disk } = scene();
  written(ledger, disk, 10);
  const old = disk.copy();
  written(ledger, disk, 20);
  disk.files.set(4, old.files.get(4) ?? Buffer.alloc(0));
  assert.deepEqual(kinds(ledger, disk), ["lost file"], "between it and the oldest kept there are gaps");
  const one = scene();
  written(one.ledger, one.disk, 17);
  one.disk.files.set(1, contentOf({ run: "run", owner: "sbx_a", n: 1, generation: 1 }));
  assert.deepEqual(kinds(one.ledger, one.disk), ["mixed state"]);
  const head = scene();
  written(head.ledger, head.disk, 5);
  head.disk.head = 4;
  assert.deepEqual(kinds(head.ledger, head.disk), ["mixed state"]);
});

test("R-16: only while a worker may be given up may the end be missing, and nothing that a snapshot holds", () => {
  for (const [restored, allowed, expected] of [
    [8, true, []],
    [12, true, []],
    [8, false, ["lost file"]],
    [7, true, ["lost file"]],
  ] as const) {
    const { ledger, disk } = scene();
    const states: Disk[] = [disk.copy()];
    for (let n = 1; n <= 14; n += 1) {
      written(ledger, disk, 1);
      states.push(disk.copy());
      if (n === 8) ledger.saved(8);
    }
    if (allowed) ledger.openLoss();
    assert.deepEqual(kinds(ledger, states[restored] ?? disk), expected, `${restored} ${allowed}`);
  }
});

test("R-16: what was given up stays away, and what is acknowledged afterwards stays", () => {
  const { ledger, disk } = scene();
  written(ledger, disk, 8);
  ledger.saved(8);
  const snapshot = disk.copy();
  written(ledger, disk, 4);
  ledger.openLoss();
  const again = snapshot.copy();
  written(ledger, again, 2); // before anybody has looked
  assert.deepEqual(kinds(ledger, again), []);
  assert.equal(ledger.gone, 4);
  ledger.closeLoss();
  assert.deepEqual(kinds(ledger, again), []);
  const mixed = again.copy();
  mixed.files.set(10, disk.files.get(10) ?? Buffer.alloc(0));
  assert.deepEqual(kinds(ledger, mixed), ["mixed state"]);
  again.files.delete(13);
  assert.deepEqual(kinds(ledger, again), ["lost file"]);
});

test("R-16: what is missing while a worker may be given up is one piece, not one file here and one there", () => {
  const { ledger, disk } = scene();
  written(ledger, disk, 6);
  ledger.openLoss();
  disk.files.delete(3);
  disk.files.delete(5);
  assert.deepEqual(kinds(ledger, disk), ["lost file"]);
});

test("a fork has its source's files as the source's, and its own as its own", () => {
  const { ledger, disk } = scene();
  written(ledger, disk, 4);
  const child = ledger.forked("sbx_child", ledger.newest);
  const childDisk = disk.copy();
  written(child, childDisk, 2);
  assert.deepEqual(kinds(child, childDisk), []);
  written(ledger, disk, 2);
  assert.deepEqual(kinds(ledger, disk), []);
  childDisk.files.set(6, disk.files.get(6) ?? Buffer.alloc(0));
  assert.deepEqual(kinds(child, childDisk), ["wrong delivery"]);
});

test("a write of which it was said that nothing happened shows when it did", () => {
  const { ledger, disk } = scene();
  const refused = ledger.begin(1);
  disk.write(refused);
  ledger.refuse(refused);
  assert.deepEqual(kinds(ledger, disk), ["wrong delivery"]);
});
