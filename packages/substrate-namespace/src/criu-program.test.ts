// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { findCriu, privateCriu, sealOf } from "./criu-program.ts";

describe("a private CRIU", () => {
  let tools = "";
  let loader = "";
  /** A prefix whose loader, whatever it is asked to run, says that it is this version. */
  async function fake(version: string, note: (seal: string) => string): Promise<void> {
    const folder = join(privateCriu(tools), "usr/lib/x86_64-linux-gnu");
    mkdirSync(folder, { recursive: true });
    loader = join(folder, "ld-linux-x86-64.so.2");
    writeFileSync(loader, `#!/bin/sh\necho "Version: ${version}"\n`);
    chmodSync(loader, 0o755);
    writeFileSync(join(privateCriu(tools), "prefix.note"), note(await sealOf(privateCriu(tools))));
  }
  const refusal = async (): Promise<string | undefined> =>
    (await findCriu(tools)).refused.find(({ path }) => path === privateCriu(tools))?.reason;

  beforeEach(() => {
    tools = mkdtempSync(join(tmpdir(), "space-tools-"));
  });
  afterEach(() => rmSync(tools, { recursive: true, force: true }));

  it("is used when its files are those that were fetched, and says what was not tried", async () => {
    await fake("4.2.1", (seal) => JSON.stringify({ untried: ["libc6 2.44-1"], seal }));
    const { found } = await findCriu(tools);
    assert.equal(found?.path, privateCriu(tools));
    assert.deepEqual([found?.version, found?.untried], ["4.2.1", ["libc6 2.44-1"]]);
  });

  it("is refused when a file of it was changed, or when it has no note of what they were", async () => {
    await fake("4.2.1", (seal) => JSON.stringify({ untried: [], seal }));
    writeFileSync(loader, `#!/bin/sh\necho "Version: 4.2.1" # \n`);
    assert.match((await refusal()) ?? "", /not those that were fetched/);
    for (const note of ["", "{}", '{"untried":[1],"seal":""}', "[]", "null"]) {
      await fake("4.2.1", () => note);
      assert.match((await refusal()) ?? "", /not those that were fetched/, note);
    }
  });

  it("is refused by its version, with the reason", async () => {
    await fake("4.1.1", (seal) => JSON.stringify({ untried: [], seal }));
    assert.match((await refusal()) ?? "", /^CRIU 4\.1\.1: it hangs/);
    await fake("unknown", (seal) => JSON.stringify({ untried: [], seal }));
    assert.equal(await refusal(), "it does not say what it is");
  });
});
