// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { isSpaceError } from "@space/model";

import { type CommandOutcome, ensureDebianPackages, type PackageHost } from "./debian-packages.ts";

/** A host in memory: knows which packages are installed, which the archive has, and whether its lists were fetched. */
class FakeHost implements PackageHost {
  isRoot = true;
  hasApt = true;
  listsFetched = true;
  readonly installed = new Set<string>();
  readonly commands = new Set<string>();
  readonly archive = new Set<string>();
  readonly aptRuns: string[] = [];

  run(command: string, args: readonly string[]): Promise<CommandOutcome> {
    const last = args.at(-1) ?? "";
    if (command === "sh") return answer(this.commands.has(last) || (last === "apt-get" && this.hasApt));
    if (command === "dpkg-query") {
      const installed = this.hasApt && this.installed.has(last);
      return answer(installed, installed ? "installed" : "");
    }
    assert.equal(command, "apt-get");
    this.aptRuns.push(args[0] ?? "");
    if (args[0] === "update") {
      this.listsFetched = true;
      return answer(true);
    }
    const names = args.slice(args.findIndex((arg) => arg.startsWith("DPkg::")) + 1);
    if (!this.listsFetched || names.some((name) => !this.archive.has(name))) return answer(false);
    for (const name of names) this.installed.add(name);
    return answer(true);
  }
}

function answer(succeeded: boolean, stdout = ""): Promise<CommandOutcome> {
  return Promise.resolve({ succeeded, stdout });
}

const python = { name: "python3", command: "python3" };
const { signal } = new AbortController();

describe("ensureDebianPackages", () => {
  it("does nothing where the command is found, Debian or not", async () => {
    const host = new FakeHost();
    host.hasApt = false;
    host.commands.add("python3");
    assert.equal(await ensureDebianPackages([python], "a test", signal, host), "present");
  });

  it("does nothing where the package is installed", async () => {
    const host = new FakeHost();
    host.installed.add("libfuse3-3");
    assert.equal(await ensureDebianPackages([{ name: "libfuse3-3" }], "a test", signal, host), "present");
    assert.deepEqual(host.aptRuns, []);
  });

  it("installs what is missing, as root", async () => {
    const host = new FakeHost();
    host.installed.add("git");
    host.archive.add("python3");
    assert.equal(await ensureDebianPackages([{ name: "git" }, python], "a test", signal, host), "installed");
    assert.deepEqual(host.aptRuns, ["install"]);
    assert.ok(host.installed.has("python3"));
  });

  it("fetches the package lists where the first try finds no package", async () => {
    const host = new FakeHost();
    host.archive.add("python3");
    host.listsFetched = false;
    assert.equal(await ensureDebianPackages([python], "a test", signal, host), "installed");
    assert.deepEqual(host.aptRuns, ["install", "update", "install"]);
  });

  for (const [what, change] of [
    ["who is not root", { isRoot: false, hasApt: true }],
    ["without apt", { isRoot: true, hasApt: false }],
  ] as const) {
    it(`tells a caller ${what} what to install, and tries nothing`, async () => {
      const host = new FakeHost();
      host.isRoot = change.isRoot;
      host.hasApt = change.hasApt;
      await assert.rejects(ensureDebianPackages([python], "the demo", signal, host), (error) => {
        assert.ok(isSpaceError(error, "host/unfit"));
        assert.match(error.details.problem, /^python3 missing.*needed for the demo$/);
        assert.equal(error.details.remedy, "apt-get install python3");
        return true;
      });
      assert.deepEqual(host.aptRuns, []);
    });
  }

  it("fails where the archive lacks the package", async () => {
    await assert.rejects(ensureDebianPackages([python], "a test", signal, new FakeHost()), (error) =>
      isSpaceError(error, "host/unfit"),
    );
  });

  it("stops when its signal aborts", async () => {
    const aborted = AbortSignal.abort(new RangeError("planted"));
    await assert.rejects(ensureDebianPackages([python], "a test", aborted, new FakeHost()), RangeError);
  });

  it("runs real programs", async () => {
    assert.equal(await ensureDebianPackages([{ name: "sh", command: "sh" }], "a test", signal), "present");
  });
});
