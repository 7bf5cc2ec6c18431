// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { goVersion, judgeBuild, readRunscBuild } from "./runsc-build.ts";

/** A program as far as its note of the build goes. */
function programBuiltBy(version: string, flags = 2): Buffer {
  const head = Buffer.alloc(32);
  head.write("\xff Go buildinf:", "latin1");
  head[14] = 8;
  head[15] = flags;
  return Buffer.concat([
    Buffer.alloc(100, 1),
    head,
    Buffer.from([version.length]),
    Buffer.from(version),
    Buffer.alloc(9),
  ]);
}

describe("a build of runsc", () => {
  it("is recognised by the compiler that its program notes", () => {
    assert.equal(goVersion(programBuiltBy("go1.22.1")), "1.22.1");
    assert.equal(goVersion(programBuiltBy("go1.25rc1")), "1.25");
    assert.equal(goVersion(programBuiltBy("go1.22.1", 0)), undefined);
    assert.equal(goVersion(Buffer.from("\xff Go buildinf:", "latin1")), undefined);
    assert.equal(goVersion(Buffer.alloc(0)), undefined);
  });

  it("is no runsc when it does not say so", async () => {
    assert.equal(await readRunscBuild("/bin/true"), undefined);
    assert.equal(await readRunscBuild("/nowhere/runsc"), undefined);
  });

  it("is judged by what it did when it was run", () => {
    const judged = (release: string, go: string) => judgeBuild({ release, go });
    assert.equal(judged("20240729.0", "1.22.1").kind, "tested");
    assert.equal(judged("20240729.0", "1.24.4").kind, "tested");
    assert.equal(judged("20260101.0", "1.26.2").kind, "untested");
    const old = judged("20221219.0", "1.19.8");
    assert.match(old.kind === "refused" ? old.reason : "", /listens on TCP/);
    const panics = judged("20240729.0", "1.26.2");
    assert.match(panics.kind === "refused" ? panics.reason : "", /panic/);
  });
});
