// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

// What snapshots cost: `node packages/testing/bench/snapshot-bench.ts`. CPU time of all threads, so that a busy machine
// changes little; the store is this process's memory, so that no disk is measured.

import { spawnSync } from "node:child_process";
import { hash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newTenantId, newTenantKeyId, Secret, type TenantSnapshots } from "@space/model";
import { cutArchive, MemoryByteStore, snapshotStore } from "@space/snapshot";

const sizeBytes = 64 * 1024 * 1024;
const random = { bytes: (length: number) => new Uint8Array(randomBytes(length)) };
const key = {
  tenantId: newTenantId(random),
  keyId: newTenantKeyId(random),
  secret: new Secret(random.bytes(32)),
};
const pieceBytes = 64 * 1024;

async function* stream(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

interface Cost {
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
}

async function measure(work: () => Promise<void>): Promise<Cost> {
  const [cpu, wall] = [process.cpuUsage(), performance.now()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { cpuSeconds: (user + system) / 1e6, wallSeconds: (performance.now() - wall) / 1000 };
}

function open(store: MemoryByteStore): TenantSnapshots {
  return snapshotStore({ store, random }).open(key);
}

function storedBytes(store: MemoryByteStore): number {
  return [...store.held.values()].reduce((total, { bytes }) => total + bytes.length, 0);
}

function line(what: string, cost: Cost, bytes: number, note = ""): void {
  const rate = (seconds: number): string => `${(bytes / 1e6 / seconds).toFixed(0).padStart(5)} MB/s`;
  process.stdout.write(
    `${what.padEnd(34)} ${rate(cost.cpuSeconds)} per core, ${rate(cost.wallSeconds)} now ${note}\n`,
  );
}

async function throughput(what: string, content: Uint8Array): Promise<void> {
  const store = new MemoryByteStore();
  const { archives } = open(store);
  let chunks = await archives.write(stream(content.subarray(0, 8 * pieceBytes))); // warm
  const write = await measure(async () => {
    chunks = await archives.write(stream(content));
  });
  line(`write ${what}`, write, content.length, `${chunks.length} chunks, ${storedBytes(store)} bytes`);
  const again = await measure(async () => {
    await archives.write(stream(content));
  });
  line(`write ${what} again`, again, content.length);
  const elsewhere = await measure(async () => {
    await open(store).archives.write(stream(content));
  });
  line(`write ${what} again, verified first`, elsewhere, content.length);
  const read = await measure(async () => {
    let total = 0;
    for await (const piece of archives.read(chunks)) total += piece.length;
    if (total !== content.length) throw new Error("the archive is another");
  });
  line(`read ${what}`, read, content.length);
}

/** What a second snapshot stores anew: ours, and chunks of one length beside it. */
async function dedupe(what: string, first: Uint8Array, second: Uint8Array): Promise<void> {
  const store = new MemoryByteStore();
  const { archives } = open(store);
  await archives.write(stream(first));
  const [once, objects] = [storedBytes(store), store.held.size];
  await archives.write(stream(second));
  const fresh = storedBytes(store) - once;
  process.stdout.write(
    `${what}: ${second.length} bytes; first stored ${once} in ${objects} objects, second ${fresh} more in ${store.held.size - objects}: ${(once / Math.max(fresh, 1)).toFixed(1)} times less\n`,
  );
  for (const fixedBytes of [64 * 1024, 256 * 1024, 4 * 1024 * 1024]) {
    const fixed = [first, second].map((bytes) => {
      const digests = new Map<string, number>();
      for (let at = 0; at < bytes.length; at += fixedBytes) {
        const piece = bytes.subarray(at, at + fixedBytes);
        digests.set(hash("sha256", piece), piece.length);
      }
      return digests;
    });
    report(`  fixed ${fixedBytes / 1024} KiB`, fixed[0] ?? new Map(), fixed[1] ?? new Map());
  }
  for (const bits of [16, 18, 20, 22]) {
    const cut = await Promise.all([first, second].map((bytes) => cutAt(bytes, bits)));
    report(`  by content, 2^${bits}`, cut[0] ?? new Map(), cut[1] ?? new Map());
  }
}

async function cutAt(bytes: Uint8Array, bits: number): Promise<Map<string, number>> {
  const table = Int32Array.from({ length: 256 }, (_, at) =>
    Number.parseInt(hash("sha256", String(at)).slice(0, 8), 16),
  );
  const size = {
    untilChunk: Number.POSITIVE_INFINITY,
    bits,
    minBytes: 2 ** (bits - 2),
    maxBytes: 2 ** (bits + 2),
  };
  const digests = new Map<string, number>();
  for await (const piece of cutArchive(stream(bytes), () => table, [size]))
    digests.set(hash("sha256", piece), piece.length);
  return digests;
}

function report(what: string, first: Map<string, number>, second: Map<string, number>): void {
  let fresh = 0;
  let total = 0;
  for (const [digest, length] of second) {
    total += length;
    if (!first.has(digest)) fresh += length;
  }
  process.stdout.write(
    `${what.padEnd(22)} ${second.size} chunks, ${((100 * fresh) / total).toFixed(1)} % new\n`,
  );
}

/** The writable memory of a Python process, before and after a little work. */
const memoryProgram = `
import json, os, random, sys
def dump(path):
    with open('/proc/self/maps') as maps: lines = maps.readlines()
    with open('/proc/self/mem', 'rb', 0) as memory, open(path, 'wb') as out:
        for line in lines:
            fields = line.split()
            if 'w' not in fields[1] or '[v' in line: continue
            start, end = (int(part, 16) for part in fields[0].split('-'))
            try:
                memory.seek(start)
                while start < end:
                    piece = memory.read(min(end - start, 1 << 20))
                    if not piece: break
                    out.write(piece)
                    start += len(piece)
            except OSError: pass
random.seed(1)
noise = random.randbytes(32 << 20)
people = [{'id': i, 'name': 'user-%d' % i, 'tags': [str(random.random()) for _ in range(5)]} for i in range(60000)]
dump(sys.argv[1])
for _ in range(300): people[random.randrange(len(people))]['tags'] = [str(random.random())] * 2
more = [json.dumps(person) for person in people[:3000]]
dump(sys.argv[2])
`;

/** A tree of sources, then one changed, one added in front, one added in the middle, one removed. */
const layerProgram = `
set -e
mkdir tree && cp -r "$1"/packages "$1"/docs tree/ && cp -r "$1"/node_modules/typescript tree/ && rm -rf tree/packages/*/node_modules
tar --sort=name -cf first tree
echo '// changed' >> tree/packages/worker/src/limits.ts
head -c 3000 /dev/zero > tree/docs/adr/added
head -c 200000 /dev/urandom > tree/packages/wire/added
rm tree/packages/gateway/README.md
tar --sort=name -cf second tree
`;

const folder = mkdtempSync(join(tmpdir(), "snapshot-bench-"));
try {
  await throughput("64 MiB of random bytes", random.bytes(sizeBytes));
  const words = Array.from({ length: 4096 }, (_, at) => hash("sha256", String(at)).slice(0, 3 + (at % 9)));
  const picks = random.bytes(2 * 16 * 1024 * 1024);
  let text = "";
  for (let at = 0; text.length < sizeBytes; at = (at + 2) % picks.length)
    text += `${words[((picks[at] ?? 0) << 4) ^ (picks[at + 1] ?? 0)] ?? ""} `;
  await throughput("64 MiB of text", Buffer.from(text.slice(0, sizeBytes)));
  const memory = ["first-memory", "second-memory"].map((name) => join(folder, name));
  const python = spawnSync("python3", ["-c", memoryProgram, ...memory], { stdio: "inherit" });
  if (python.status !== 0) throw new Error("python3 ended with a failure");
  await dedupe("memory of a Python process", readFileSync(memory[0] ?? ""), readFileSync(memory[1] ?? ""));
  const tree = join(import.meta.dirname, "../../..");
  const shell = spawnSync("sh", ["-c", layerProgram, "sh", tree], { cwd: folder, stdio: "inherit" });
  if (shell.status !== 0) throw new Error("tar ended with a failure");
  await dedupe("layer of sources", readFileSync(join(folder, "first")), readFileSync(join(folder, "second")));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`peak memory ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB\n`);
