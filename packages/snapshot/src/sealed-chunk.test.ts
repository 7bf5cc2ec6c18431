// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { isSpaceError } from "@space/model";
import { encrypt } from "./byte-work.ts";
import { chunkLimitBytes, openChunk, sealChunk, sealedLimitBytes } from "./sealed-chunk.ts";
import { code, seeded, sha256, tenantKey } from "./tenant.fixture.ts";
import { TenantSecrets } from "./tenant-secrets.ts";

const secrets = new TenantSecrets(tenantKey("a"));
const others = new TenantSecrets(tenantKey("b"));
const random = seeded("nonces");
const headerBytes = 54;

function idOf(content: Uint8Array, owner = secrets): { digest: ReturnType<typeof sha256>; name: string } {
  const digest = sha256(content);
  return { digest, name: owner.name(digest) };
}

const small = Buffer.from("a small one");
const text = Buffer.from("plain words, many times over. ".repeat(10_000));
const noise = Buffer.from(seeded("noise").bytes(200_000));

for (const [what, content] of Object.entries({ nothing: Buffer.alloc(0), small, text, noise })) {
  test(`gives back ${what}, and shows nothing of it`, async () => {
    const id = idOf(content);
    const sealed = await sealChunk(content, id, { secrets, random });
    assert.deepEqual(Buffer.from(await openChunk(sealed, id, secrets)), content);
    assert.equal(Buffer.from(sealed).includes("plain words"), false);
    assert.equal(Buffer.from(sealed).includes("small"), false);
    assert.equal(Buffer.from(sealed).includes(Buffer.from(id.digest, "hex")), false);
  });
}

test("compresses where that helps, and only there", async () => {
  assert.ok((await sealChunk(text, idOf(text), { secrets, random })).length < text.length / 20);
  const sealed = await sealChunk(noise, idOf(noise), { secrets, random });
  assert.equal(sealed.length, noise.length + headerBytes + 16);
  // Half of it: what is long is not judged by its beginning or its end alone.
  const half = noise.length / 2;
  for (const mixed of [
    Buffer.concat([noise.subarray(0, half), Buffer.alloc(half)]),
    Buffer.concat([Buffer.alloc(half), noise.subarray(0, half)]),
    Buffer.concat([noise.subarray(0, half / 2), Buffer.alloc(half), noise.subarray(0, half / 2)]),
  ])
    assert.ok((await sealChunk(mixed, idOf(mixed), { secrets, random })).length < mixed.length * 0.6);
});

test("one content has one name and one key in a tenant, and others in another", () => {
  const digest = sha256(small);
  assert.equal(secrets.name(digest), new TenantSecrets(tenantKey("a")).name(digest));
  assert.notEqual(secrets.name(digest), others.name(digest));
  assert.notEqual(secrets.name(digest), digest);
  assert.notDeepEqual(secrets.chunkKey(digest), others.chunkKey(digest));
  assert.notDeepEqual(secrets.chunkKey(digest), secrets.chunkKey(sha256(text)));
  const rotated = new TenantSecrets({ ...tenantKey("a"), keyId: tenantKey("b").keyId });
  assert.notEqual(secrets.name(digest), rotated.name(digest));
});

test("draws a nonce for every sealing", async () => {
  const [first, second] = [
    await sealChunk(small, idOf(small), { secrets, random }),
    await sealChunk(small, idOf(small), { secrets, random }),
  ];
  assert.notDeepEqual(first.subarray(42, headerBytes), second.subarray(42, headerBytes));
});

for (const [what, content] of Object.entries({ small, noise })) {
  test(`refuses ${what} with any byte flipped, each for what it is`, async () => {
    const id = idOf(content);
    const sealed = await sealChunk(content, id, { secrets, random });
    const step = Math.max(1, Math.floor(sealed.length / 150));
    const codes = new Set<string>();
    for (let at = 0; at < sealed.length; at += at < headerBytes ? 1 : step) {
      const flipped = Buffer.from(sealed);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
      await assert.rejects(openChunk(flipped, id, secrets), (error: unknown) => {
        const expected =
          at === 0
            ? ["chunk/version"]
            : at >= 2 && at < 34
              ? ["chunk/misplaced"]
              : ["chunk/damaged", "chunk/truncated"];
        codes.add(isSpaceError(error) ? error.code : "bug");
        return isSpaceError(error) && expected.includes(error.code);
      });
    }
    assert.deepEqual([...codes].toSorted(), [
      "chunk/damaged",
      "chunk/misplaced",
      "chunk/truncated",
      "chunk/version",
    ]);
  });
}

test("refuses a cut-off chunk at every length", async () => {
  const id = idOf(small);
  const sealed = await sealChunk(small, id, { secrets, random });
  for (let length = 0; length < sealed.length; length += 1)
    await assert.rejects(openChunk(sealed.subarray(0, length), id, secrets), code("chunk/truncated"));
  await assert.rejects(
    openChunk(Buffer.concat([sealed, Buffer.alloc(1)]), id, secrets),
    code("chunk/damaged"),
  );
});

test("refuses another chunk in its place, of this tenant or of another", async () => {
  const other = await sealChunk(text, idOf(text), { secrets, random });
  await assert.rejects(openChunk(other, idOf(small), secrets), code("chunk/misplaced"));
  const foreign = await sealChunk(small, idOf(small, others), { secrets: others, random });
  await assert.rejects(openChunk(foreign, idOf(small), secrets), code("chunk/misplaced"));
  // with the name that was asked for written over its own
  const renamed = Buffer.from(foreign);
  renamed.set(Buffer.from(idOf(small).name, "hex"), 2);
  await assert.rejects(openChunk(renamed, idOf(small), secrets), code("chunk/damaged"));
});

test("refuses a form of the future", async () => {
  const sealed = Buffer.from(await sealChunk(small, idOf(small), { secrets, random }));
  sealed[0] = 2;
  await assert.rejects(
    openChunk(sealed, idOf(small), secrets),
    (error: unknown) => isSpaceError(error, "chunk/version") && error.details.version === 2,
  );
});

test("refuses what somebody with the tenant's key has sealed under a digest that is not its own", async () => {
  const id = idOf(small);
  for (const content of [
    Buffer.from("A small one"),
    Buffer.from("longer than the one that was asked for"),
    text,
  ]) {
    const forged = await sealChunk(content, id, { secrets, random });
    await assert.rejects(openChunk(forged, id, secrets), code("chunk/damaged"));
  }
});

test("holds no more than the length that the header says, whatever the compressed bytes are", async () => {
  const id = idOf(small);
  const bomb = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024));
  const header = Buffer.alloc(headerBytes);
  header.set([1, 1]);
  header.set(Buffer.from(id.name, "hex"), 2);
  header.writeUInt32BE(small.length, 34);
  header.writeUInt32BE(bomb.length + 16, 38);
  const nonce = header.subarray(42);
  const sealed = await encrypt(bomb, { key: secrets.chunkKey(id.digest), nonce, header });
  await assert.rejects(openChunk(sealed, id, secrets), code("chunk/damaged"));
});

test("seals nothing that is too long to be opened", async () => {
  const long = Buffer.alloc(chunkLimitBytes + 1);
  await assert.rejects(sealChunk(long, idOf(long), { secrets, random }), code("input/too-large"));
  assert.ok(sealedLimitBytes > chunkLimitBytes);
});
