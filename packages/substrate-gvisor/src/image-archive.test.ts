// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { isSpaceError } from "@space/model";
import { archiveImage, restoreImage } from "./image-archive.ts";

const here = { runsc: "runsc 20240729.0 go1.22.1", features: ["avx2", "sse"] };
const contents = { "checkpoint.img": "kernel", "pages.img": "p".repeat(300_000), "pages_meta.img": "" };

describe("an image as a stream", () => {
  let folder = "";
  let made = 0;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "space-image-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const empty = (): string => {
    made += 1;
    const path = join(folder, String(made));
    mkdirSync(path);
    return path;
  };
  const image = (files: Readonly<Record<string, string>> = contents): string => {
    const path = empty();
    for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
    return path;
  };
  const archived = async (origin = here): Promise<Buffer> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of archiveImage(image(), origin)) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
  async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const refuses = async (bytes: Buffer, problem: RegExp, place = here): Promise<void> => {
    await assert.rejects(
      restoreImage(empty(), place, pieces(bytes, 4096)),
      (error) => isSpaceError(error, "snapshot/refused") && problem.test(error.details.problem),
    );
  };

  it("comes back as it was, however it is cut", async () => {
    const bytes = await archived();
    for (const size of [1000, 65_536, bytes.length]) {
      const path = empty();
      await restoreImage(path, here, pieces(bytes, size));
      assert.deepEqual(readdirSync(path).sort(), Object.keys(contents).sort());
      for (const [name, content] of Object.entries(contents))
        assert.equal(readFileSync(join(path, name), "utf8"), content);
    }
  });

  it("is refused where another runsc or a lesser processor would have to restore it", async () => {
    const bytes = await archived();
    await refuses(bytes, /made by runsc 20240729.0 go1.22.1/, {
      ...here,
      runsc: "runsc 20260101.0 go1.26.1",
    });
    await refuses(bytes, /avx2/, { ...here, features: ["sse"] });
    await restoreImage(empty(), { ...here, features: ["avx2", "avx512", "sse"] }, pieces(bytes, 4096));
  });

  it("is refused cut short anywhere, with more behind it, or in another form", async () => {
    const bytes = await archived();
    for (const length of [0, 5, 22, 60, 200, bytes.length - 1])
      await refuses(bytes.subarray(0, length), /cut short|form/);
    await refuses(Buffer.concat([bytes, Buffer.from("x")]), /form/);
    await refuses(Buffer.from(bytes.toString("latin1").replace("pages.img", "../../abc"), "latin1"), /form/);
    await refuses(
      Buffer.from(bytes.toString("latin1").replace('"sizeBytes":6', '"sizeBytes":7'), "latin1"),
      /cut short/,
    );
    await refuses(Buffer.alloc(100_000, 0xff), /form/);
  });

  it("is not made of files that no checkpoint consists of, nor of none", async () => {
    for (const files of [{}, { ...contents, "other.img": "x" }]) {
      await assert.rejects(
        archiveImage(image(files), here).next(),
        (error) => isSpaceError(error, "substrate/failed") && error.details.step === "archive",
      );
    }
  });
});
