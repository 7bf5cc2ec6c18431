// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { type ByteStore, isSpaceError, type StoredBytes } from "@space/model";
import { SeededRandom } from "../src/seeded-random.ts";

/** A store to try, and what ends it. `again`: the same bytes as another process sees them. */
export interface OpenedByteStore {
  readonly store: ByteStore;
  readonly again: () => Promise<ByteStore>;
  readonly dispose: () => Promise<void>;
}

const random = new SeededRandom("byte store");
const limitBytes = 10_000_000;

async function listed(store: ByteStore, prefix: string): Promise<readonly StoredBytes[]> {
  const found: StoredBytes[] = [];
  for await (const object of store.list(prefix)) found.push(object);
  return found.toSorted((one, other) => (one.key < other.key ? -1 : 1));
}

async function keys(store: ByteStore, prefix: string): Promise<readonly string[]> {
  return (await listed(store, prefix)).map(({ key }) => key);
}

/** What every {@link ByteStore} does. `skip`: why this one cannot be tried here. */
export function byteStoreContract(
  name: string,
  open: () => Promise<OpenedByteStore>,
  skip: string | false = false,
): void {
  const subject = async (context: TestContext): Promise<OpenedByteStore> => {
    const opened = await open();
    context.after(() => opened.dispose());
    return opened;
  };

  describe(`${name}: bytes by their keys`, { skip }, () => {
    test("gives back what was put, also to another process, and replaces it whole", async (context) => {
      const { store, again } = await subject(context);
      for (const bytes of [Buffer.from("first"), random.bytes(5_000_000), Buffer.from("a")]) {
        await store.put("chunks/a/b-c_d/0", bytes);
        assert.deepEqual(
          Buffer.from((await store.get("chunks/a/b-c_d/0", limitBytes)) ?? []),
          Buffer.from(bytes),
        );
        const other = await again();
        assert.deepEqual(
          Buffer.from((await other.get("chunks/a/b-c_d/0", limitBytes)) ?? []),
          Buffer.from(bytes),
        );
        assert.equal(await other.has("chunks/a/b-c_d/0"), true);
      }
    });

    test("what is absent is undefined, and its removal or move is no failure", async (context) => {
      const { store } = await subject(context);
      assert.equal(await store.get("chunks/none", limitBytes), undefined);
      assert.equal(await store.has("chunks/none"), false);
      await store.remove("chunks/none");
      assert.equal(await store.move("chunks/none", "chunks/there"), false);
      assert.equal(await store.has("chunks/there"), false);
      assert.deepEqual(await keys(store, "chunks/"), []);
    });

    test("a folder of objects is no object", async (context) => {
      const { store } = await subject(context);
      await store.put("chunks/a/b", Buffer.from("bytes"));
      assert.equal(await store.has("chunks/a"), false);
    });

    test("gives out nothing of what is longer than the limit", async (context) => {
      const { store } = await subject(context);
      await store.put("chunks/a", Buffer.alloc(1001));
      assert.equal((await store.get("chunks/a", 1001))?.length, 1001);
      await assert.rejects(store.get("chunks/a", 1000), (error: unknown) =>
        isSpaceError(error, "input/too-large"),
      );
    });

    test("moves bytes, over others where there are some, and says when", async (context) => {
      const { store } = await subject(context);
      await store.put("chunks/a/one", Buffer.from("one"));
      await store.put("condemned/a/one", Buffer.from("another"));
      const beforeMs = Date.now();
      assert.equal(await store.move("chunks/a/one", "condemned/a/one"), true);
      assert.equal(await store.has("chunks/a/one"), false);
      assert.deepEqual(Buffer.from((await store.get("condemned/a/one", 100)) ?? []), Buffer.from("one"));
      const [moved] = await listed(store, "condemned/");
      assert.ok(Math.abs((moved?.modifiedMs ?? 0) - beforeMs) < 60_000);
      assert.equal(await store.move("condemned/a/one", "chunks/b/c/d/one"), true);
      assert.deepEqual(await keys(store, "chunks/"), ["chunks/b/c/d/one"]);
      assert.deepEqual(await keys(store, "condemned/"), []);
    });

    test("lists every key under a prefix with its size, over several pages, and no other", async (context) => {
      const { store } = await subject(context);
      const names = Array.from(
        { length: 1203 },
        (_, at) => `chunks/ten_a/${at % 7}/${String(at).padStart(4, "0")}`,
      );
      for (let at = 0; at < names.length; at += 40)
        await Promise.all(
          names.slice(at, at + 40).map((key, place) => store.put(key, Buffer.alloc(1 + place))),
        );
      await store.put("chunks/ten_ab/0/0", Buffer.from("another tenant's"));
      const found = await listed(store, "chunks/ten_a/");
      assert.deepEqual(
        found.map(({ key }) => key),
        names.toSorted(),
      );
      assert.equal(found.find(({ key }) => key === names[39])?.sizeBytes, 40);
      assert.deepEqual(await keys(store, "chunks/ten_ab/"), ["chunks/ten_ab/0/0"]);
    });

    test("removes one and leaves its neighbours", async (context) => {
      const { store } = await subject(context);
      await store.put("chunks/a/b/c", Buffer.from("c"));
      await store.put("chunks/a/d", Buffer.from("d"));
      await store.remove("chunks/a/b/c");
      assert.deepEqual(await keys(store, "chunks/"), ["chunks/a/d"]);
      await store.put("chunks/a/b/c", Buffer.from("again"));
      assert.deepEqual(await keys(store, "chunks/"), ["chunks/a/b/c", "chunks/a/d"]);
    });

    test("many at once, in folders that come and go, are all kept", async (context) => {
      const { store, again } = await subject(context);
      const other = await again();
      const work = Array.from({ length: 40 }, async (_, at) => {
        const mine = at % 2 === 0 ? store : other;
        const key = `chunks/${at % 4}/x/${at}`;
        await mine.put(key, Buffer.from(`bytes of ${at}`));
        if (at % 4 === 0) await mine.remove(key);
        if (at % 4 === 1) await mine.move(key, `condemned/${at % 3}/${at}`);
      });
      await Promise.all(work);
      assert.equal((await keys(store, "chunks/")).length, 20);
      assert.equal((await keys(other, "condemned/")).length, 10);
    });

    test("refuses to be asked for what is no key", async (context) => {
      const { store } = await subject(context);
      for (const key of ["", "..", "a/../b", "/a", "a/", "a//b", "A", "a b", "a?x", "a%2fb", "é"]) {
        await assert.rejects(store.get(key, 1), TypeError, key);
        await assert.rejects(store.put(key, Buffer.from("x")), TypeError, key);
        await assert.rejects(store.move("a", key), TypeError, key);
      }
      await assert.rejects(keys(store, "chunks"), TypeError);
    });
  });
}
