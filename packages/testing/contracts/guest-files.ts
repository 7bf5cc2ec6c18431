// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { it } from "node:test";
import { type FetchedFile, fetchLimitBytes, GuestError } from "@space/spaced-guest";
import type { TestGuest } from "../src/guest-host.ts";

const owner = { uid: 1000, gid: 1000 };

/** Matches the guest's refusal with this errno. */
export function guestError(code: string): (error: unknown) => boolean {
  return (error) => error instanceof GuestError && error.code === code;
}

/** Files: content, ownership, symlinks, refusals. */
export function fileCases(guest: () => TestGuest): void {
  it("writes, stats and reads a file, making parents with the given owner", async () => {
    await guest().using(async (connection) => {
      const entry = await connection.writeFile(
        "/home/user/p/q/a.txt",
        { ...owner, makeParents: true },
        Buffer.from("hello"),
      );
      assert.deepEqual(
        {
          type: entry.type,
          mode: entry.mode,
          uid: entry.uid,
          gid: entry.gid,
          size: entry.sizeBytes,
          path: entry.path,
        },
        { type: "file", mode: 0o644, uid: 1000, gid: 1000, size: 5, path: "/home/user/p/q/a.txt" },
      );
      assert.equal((await connection.stat("/home/user/p")).uid, 1000);
      assert.equal((await connection.stat("/home/user/p/q")).mode, 0o755);
      assert.ok(Math.abs(entry.modifiedAtMs - Date.now()) < 60_000);
      assert.equal((await connection.readFile("/home/user/p/q/a.txt", 100)).toString(), "hello");
      assert.equal(
        (await connection.readFile("/home/user/p/q/a.txt", 100, { offset: 1, length: 3 })).toString(),
        "ell",
      );
      assert.equal((await connection.readFile("/home/user/p/q/a.txt", 100, { offset: 99 })).length, 0);
    });
  });

  it("truncates, appends, and keeps the mode of an existing file", async () => {
    await guest().using(async (connection) => {
      await connection.writeFile("/tmp/script", { ...owner, mode: 0o755 }, Buffer.from("longer content"));
      const entry = await connection.writeFile(
        "/tmp/script",
        { uid: 0, gid: 0, mode: 0o600 },
        Buffer.from("short"),
      );
      assert.deepEqual([entry.mode, entry.uid, entry.sizeBytes], [0o755, 0, 5]);
      await connection.writeFile("/tmp/script", { ...owner, append: true }, Buffer.from("er"));
      assert.equal((await connection.readFile("/tmp/script", 100)).toString(), "shorter");
    });
  });

  it("carries empty, binary and large content unchanged", async () => {
    await guest().using(async (connection) => {
      for (const size of [0, 1, 61_439, 61_440, 61_441, 65_536, 3_000_001]) {
        const content = randomBytes(size);
        const entry = await connection.writeFile("/tmp/content", owner, content);
        assert.equal(entry.sizeBytes, size);
        assert.ok((await connection.readFile("/tmp/content", 4_000_000)).equals(content), `${size} bytes`);
      }
    });
  });

  it("streams a write with back-pressure", async () => {
    await guest().using(async (connection) => {
      const writer = connection.writeStream("/tmp/streamed", owner);
      const piece = randomBytes(200_000);
      for (let count = 0; count < 40; count += 1) if (!writer.write(piece)) await writer.drained();
      assert.equal((await writer.end()).sizeBytes, 8_000_000);
      assert.equal(connection.usable, true);
    });
  });

  it("answers a failed write once and stays usable", async () => {
    await guest().using(async (connection) => {
      const big = randomBytes(500_000);
      await assert.rejects(connection.writeFile("/nowhere/file", owner, big), guestError("ENOENT"));
      await assert.rejects(connection.writeFile("/tmp", owner, big), guestError("EISDIR"));
      await assert.rejects(connection.writeFile("/usr/bin/new", owner, big), guestError("EROFS"));
      await assert.rejects(
        connection.writeFile("/etc/passwd/x", { ...owner, makeParents: true }, big),
        guestError("ENOTDIR"),
      );
      assert.equal((await connection.stat("/")).type, "directory");
    });
  });

  it("reports what cannot be read, and never hangs on a FIFO", async () => {
    await guest().shell("mkfifo -m 666 /tmp/fifo");
    await guest().using(async (connection) => {
      await assert.rejects(connection.stat("/missing"), guestError("ENOENT"));
      await assert.rejects(connection.readFile("/missing", 10), guestError("ENOENT"));
      await assert.rejects(connection.readFile("/tmp", 10), guestError("EISDIR"));
      assert.equal((await connection.readFile("/tmp/fifo", 10)).length, 0);
      await assert.rejects(connection.writeFile("/tmp/fifo", owner, Buffer.from("x")), guestError("ENXIO"));
      assert.match((await connection.readFile("/proc/version", 10_000)).toString(), /Linux/);
    });
  });

  it("answers requests for small files that were sent ahead in their order, each by itself", async () => {
    await guest().shell("mkfifo -m 666 /tmp/pipe; ln -s /tmp/fetched-3 /tmp/fetched-link");
    const sizes = [0, 1, 3_000, fetchLimitBytes, fetchLimitBytes + 1];
    const contents = sizes.map((size) => randomBytes(size));
    await guest().using(async (connection) => {
      for (const [index, content] of contents.entries())
        await connection.writeFile(`/tmp/fetched-${index}`, owner, content);
      const { modifiedAtMs } = await connection.stat("/tmp/fetched-2");
      const lane = connection.fetches();
      const fetch = (path: string) =>
        new Promise<FetchedFile>((done, failed) => lane.add({ path, done, failed }));
      const paths = [0, 1, 2, 3].map((index) => `/tmp/fetched-${index}`);
      const asked = [
        ...paths,
        "/tmp/fetched-link",
        "/proc/version",
        "/missing",
        "/tmp",
        "/tmp/pipe",
        "/dev/zero",
      ];
      const rounds = Array.from({ length: 30 }, () => [...asked, "/tmp/fetched-4"]).flat();
      const answers = await Promise.allSettled(rounds.map(fetch));
      for (const [index, answer] of answers.entries()) {
        const path = rounds[index] ?? "";
        const content = path === "/tmp/fetched-link" ? contents[3] : contents[Number(path.at(-1))];
        if (answer.status === "rejected") {
          const code = { "/missing": "ENOENT", "/tmp": "EISDIR" }[path] ?? "EFBIG";
          assert.ok(guestError(code)(answer.reason), `${path}: ${answer.reason}`);
          assert.ok(!paths.includes(path) && path !== "/proc/version", path);
        } else if (path === "/proc/version") assert.match(answer.value.content.toString(), /Linux/);
        else assert.ok(content?.equals(answer.value.content) === true, path);
        if (path === "/tmp/fetched-2" && answer.status === "fulfilled")
          assert.deepEqual([answer.value.sizeBytes, answer.value.modifiedAtMs], [3_000, modifiedAtMs]);
      }
      lane.release();
      assert.equal((await connection.stat("/tmp")).type, "directory");
    });
  });

  it("gives up on a file larger than the reader allows", async () => {
    await guest().using(async (connection) => {
      await assert.rejects(connection.readFile("/dev/zero", 1_000_000), guestError("EFBIG"));
      assert.equal(connection.usable, false);
    });
  });

  it("describes symlinks by their targets, dangling ones by themselves", async () => {
    await guest().shell(
      "mkdir -p links/d && cd links && echo 1 > f && ln -s f to-file && ln -s d to-dir && ln -s gone dangling && ln -s loop loop",
    );
    await guest().using(async (connection) => {
      const at = (name: string) => connection.stat(`/home/user/links/${name}`);
      const toFile = await at("to-file");
      assert.deepEqual(
        [toFile.type, toFile.isSymlink, toFile.symlinkTarget],
        ["file", true, "/home/user/links/f"],
      );
      assert.deepEqual([(await at("to-dir")).type, (await at("f")).symlinkTarget], ["directory", ""]);
      const dangling = await at("dangling");
      assert.deepEqual([dangling.type, dangling.isSymlink, dangling.symlinkTarget], ["other", true, "gone"]);
      assert.equal((await at("loop")).type, "other");
    });
  });
}

/** Folders: listing, making, moving, removing. */
export function treeCases(guest: () => TestGuest): void {
  it("lists in depth-first lexical order down to the depth, not into symlinks", async () => {
    await guest().shell(
      "mkdir -p t/b/c t/a && touch t/b/c/deep t/b/x t/z t/a/1 && ln -s b t/l && chmod 700 t/b",
    );
    await guest().using(async (connection) => {
      const names = async (depth: number, path = "/home/user/t") =>
        (await connection.list(path, depth)).map((entry) => entry.path.slice("/home/user/".length));
      assert.deepEqual(await names(1), ["t/a", "t/b", "t/l", "t/z"]);
      assert.deepEqual(await names(2), ["t/a", "t/a/1", "t/b", "t/b/c", "t/b/x", "t/l", "t/z"]);
      assert.equal((await names(9, "/home/user/t/")).at(4), "t/b/c/deep");
      assert.deepEqual(await names(1, "/home/user/t/l"), ["t/l/c", "t/l/x"]);
      await assert.rejects(connection.list("/home/user/t/z"), guestError("ENOTDIR"));
      await assert.rejects(connection.list("/gone"), guestError("ENOENT"));
    });
  });

  it("lists a large folder completely", async () => {
    await guest().shell("mkdir many && cd many && seq -w 1 5000 | xargs touch");
    await guest().using(async (connection) => {
      const entries = await connection.list("/home/user/many");
      assert.equal(entries.length, 5000);
      assert.equal(entries[4999]?.path, "/home/user/many/5000");
    });
  });

  it("makes folders like mkdir -p and says what was there", async () => {
    await guest().using(async (connection) => {
      await connection.mkdir("/home/user/m/n/o/", owner);
      assert.equal((await connection.stat("/home/user/m/n")).uid, 1000);
      await assert.rejects(connection.mkdir("/home/user/m/n/o", owner), guestError("EEXIST"));
      await assert.rejects(connection.mkdir("/etc/passwd", owner), guestError("ENOTDIR"));
      await assert.rejects(connection.mkdir("/etc/passwd/sub", owner), guestError("ENOTDIR"));
    });
  });

  it("renames into folders that it makes", async () => {
    await guest().using(async (connection) => {
      await connection.writeFile("/home/user/from", owner, Buffer.from("x"));
      const entry = await connection.rename("/home/user/from", "/home/user/new/place/to", owner);
      assert.equal(entry.path, "/home/user/new/place/to");
      assert.equal((await connection.stat("/home/user/new/place")).uid, 1000);
      await assert.rejects(
        connection.rename("/home/user/from", "/home/user/other", owner),
        guestError("ENOENT"),
      );
    });
  });

  it("removes trees, however deep, without following symlinks", async () => {
    const deep = 'for (1..1500) { mkdir "d" and chdir "d" or exit 1 } open F, ">end" or exit 1';
    await guest().shell(
      `mkdir -p rm keep && touch keep/me && ln -s ../keep rm/link && cd rm && perl -e '${deep}'`,
    );
    await guest().using(async (connection) => {
      await connection.remove("/home/user/rm");
      await assert.rejects(connection.stat("/home/user/rm"), guestError("ENOENT"));
      assert.equal((await connection.stat("/home/user/keep/me")).type, "file");
      await connection.remove("/home/user/never-was");
      await connection.remove("/home/user/keep/me/");
      for (const root of ["/", "//", "/home/.."]) {
        await assert.rejects(connection.remove(root), guestError("EBUSY"), root);
      }
      await assert.rejects(connection.remove("/usr/bin"), guestError("EROFS"));
    });
  });

  it("flushes and measures the file system", async () => {
    await guest().using(async (connection) => {
      await connection.sync();
      const { totalBytes, availableBytes } = await connection.statfs();
      assert.ok(totalBytes > 0 && availableBytes > 0 && availableBytes <= totalBytes);
    });
  });
}
