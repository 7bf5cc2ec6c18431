// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
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
import { type PrefixPackage, unpackDebianPackages } from "./debian-prefix.ts";

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const hasKeyring = existsSync(keyring);

/** A host whose apt knows one mirror; each program's part can be made to fail. */
class FakeHost implements PackageHost {
  readonly isRoot = false;
  targets = "https://elsewhere.example/tools/\nhttps://mirror.example/debian/\n";
  failing = "";
  source = "";
  settings = "";
  /** What the suite has, with its version. */
  archive = "tool=1:2";
  readonly asked: (readonly string[])[] = [];

  run(command: string, args: readonly string[]): Promise<CommandOutcome> {
    const what = command === "apt-get" ? (args.at(-1) ?? "") : command;
    if (what === "Created-By: Packages") return answer(true, this.targets);
    if (what === "update") {
      this.settings = readFileSync(args[2] ?? "", "utf8");
      this.source = readFileSync(/sourcelist "(.*)"/.exec(this.settings)?.[1] ?? "", "utf8");
    } else if (what === "sh" && this.failing !== "sh") {
      this.asked.push(args.slice(5));
      if (args.slice(5).some((name) => name.includes("=") && name !== this.archive)) return answer(false);
      writeFileSync(join(args[3] ?? "", "tool_1%3a2_amd64.deb"), "package");
    } else if (what === "dpkg-deb" && this.failing !== "dpkg-deb") {
      mkdirSync(args[2] ?? "", { recursive: true });
      writeFileSync(join(args[2] ?? "", "tool"), "program");
    }
    return answer(what !== this.failing);
  }
}

function answer(succeeded: boolean, stdout = ""): Promise<CommandOutcome> {
  return Promise.resolve({ succeeded, stdout });
}

describe("unpackDebianPackages", { skip: hasKeyring ? false : "no keyring of Debian's archive" }, () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "space-prefix-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const { signal } = new AbortController();
  const wanted = (pin?: PrefixPackage["pin"]) => ({
    packages: [pin === undefined ? { name: "tool" } : { name: "tool", pin }],
    suite: "some-suite",
    into: join(folder, "tools/tool"),
  });

  it("unpacks what apt has verified into its own folder, with lists of its own, and replaces what was there", async () => {
    const host = new FakeHost();
    mkdirSync(join(folder, "tools/tool"), { recursive: true });
    writeFileSync(join(folder, "tools/tool/old"), "");
    await unpackDebianPackages(wanted(), "a test", signal, host);
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
        unpackDebianPackages(wanted(), "a test", signal, host),
        (error) => isSpaceError(error, "host/unfit") && error.details.problem.includes("needed for a test"),
      );
      assert.deepEqual(readdirSync(join(folder, "tools")), ["tool"]);
    }
  });

  const digest = createHash("sha256").update("package").digest("hex");

  it("takes the pinned version, if its digest is the pinned one, and says so", async () => {
    const host = new FakeHost();
    const unpacked = await unpackDebianPackages(
      wanted({ version: "1:2", sha256: digest }),
      "a test",
      signal,
      host,
    );
    assert.deepEqual(unpacked, [{ name: "tool", version: "1:2", isPinned: true }]);
    assert.deepEqual(host.asked, [["tool=1:2"]]);
  });

  it("refuses the pinned version with another digest, and leaves nothing", async () => {
    const forged = wanted({ version: "1:2", sha256: digest.replace(/^./, "x") });
    await assert.rejects(
      unpackDebianPackages(forged, "a test", signal, new FakeHost()),
      (error) => isSpaceError(error, "host/unfit") && error.details.problem.includes("digest differs"),
    );
    assert.deepEqual(readdirSync(join(folder, "tools")), []);
  });

  it("takes what the suite has where it has given up the pinned version, and says so", async () => {
    const host = new FakeHost();
    const old = wanted({ version: "1:1", sha256: digest });
    const unpacked = await unpackDebianPackages(old, "a test", signal, host);
    assert.deepEqual(unpacked, [{ name: "tool", version: "1:2", isPinned: false }]);
    assert.deepEqual(host.asked, [["tool=1:1"], ["tool"]]);
  });

  it("says when apt knows no mirror of Debian", async () => {
    const host = new FakeHost();
    host.targets = "https://elsewhere.example/tools/\nhttps://mirror.example/debian [trusted=yes]/debian/\n";
    await assert.rejects(unpackDebianPackages(wanted(), "a test", signal, host), (error) =>
      isSpaceError(error, "host/unfit"),
    );
    assert.equal(existsSync(join(folder, "tools")), false);
  });
});
