// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { isSpaceError } from "@space/model";
import type { CommandOutcome, PackageHost } from "./debian-packages.ts";
import { unpackDebianPackage } from "./debian-prefix.ts";

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const hasKeyring = existsSync(keyring);

/** A host whose apt knows one mirror; each program's part can be made to fail. */
class FakeHost implements PackageHost {
  readonly isRoot = false;
  targets = "https://elsewhere.example/tools/\nhttps://mirror.example/debian/\n";
  failing = "";
  source = "";
  settings = "";

  run(command: string, args: readonly string[]): Promise<CommandOutcome> {
    const what = command === "apt-get" ? (args.at(-1) ?? "") : command;
    if (what === "Created-By: Packages") return answer(true, this.targets);
    if (what === "update") {
      this.settings = readFileSync(args[2] ?? "", "utf8");
      this.source = readFileSync(/sourcelist "(.*)"/.exec(this.settings)?.[1] ?? "", "utf8");
    } else if (what === "sh" && this.failing !== "sh") {
      writeFileSync(join(args[3] ?? "", "tool_1.deb"), "package");
    } else if (what === "dpkg-deb" && this.failing !== "dpkg-deb") {
      mkdirSync(args[2] ?? "");
      writeFileSync(join(args[2] ?? "", "tool"), "program");
    }
    return answer(what !== this.failing);
  }
}

function answer(succeeded: boolean, stdout = ""): Promise<CommandOutcome> {
  return Promise.resolve({ succeeded, stdout });
}

describe("unpackDebianPackage", { skip: hasKeyring ? false : "no keyring of Debian's archive" }, () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "space-prefix-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const { signal } = new AbortController();
  const wanted = () => ({ name: "tool", suite: "some-suite", into: join(folder, "tools/tool") });

  it("unpacks what apt has verified into its own folder, with lists of its own, and replaces what was there", async () => {
    const host = new FakeHost();
    mkdirSync(join(folder, "tools/tool"), { recursive: true });
    writeFileSync(join(folder, "tools/tool/old"), "");
    await unpackDebianPackage(wanted(), "a test", signal, host);
    assert.deepEqual(readdirSync(join(folder, "tools")), ["tool"]);
    assert.deepEqual(readdirSync(join(folder, "tools/tool")), ["tool"]);
    assert.equal(host.source, `deb [signed-by=${keyring}] https://mirror.example/debian/ some-suite main\n`);
    for (const setting of ["Dir::State::lists", "Dir::State::status", "Dir::Cache"])
      assert.match(host.settings, new RegExp(`^${setting} "${folder}/tools/tool.draft-`, "m"));
    assert.match(host.settings, /^APT::Get::AllowUnauthenticated "false";$/m);
  });

  it("leaves what was there, and nothing else, when any step fails", async () => {
    for (const failing of ["update", "sh", "dpkg-deb"]) {
      const host = new FakeHost();
      host.failing = failing;
      mkdirSync(join(folder, "tools/tool"), { recursive: true });
      await assert.rejects(
        unpackDebianPackage(wanted(), "a test", signal, host),
        (error) => isSpaceError(error, "host/unfit") && error.details.problem.includes("needed for a test"),
      );
      assert.deepEqual(readdirSync(join(folder, "tools")), ["tool"]);
    }
  });

  it("says when apt knows no mirror of Debian", async () => {
    const host = new FakeHost();
    host.targets = "https://elsewhere.example/tools/\nhttps://mirror.example/debian [trusted=yes]/debian/\n";
    await assert.rejects(unpackDebianPackage(wanted(), "a test", signal, host), (error) =>
      isSpaceError(error, "host/unfit"),
    );
    assert.equal(existsSync(join(folder, "tools")), false);
  });
});
