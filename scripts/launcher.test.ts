// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { PlantedTree, projectRoot } from "./planted-tree.ts";

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Stands in for npm: notes that it ran, then makes the one file that the launcher needs, or fails. */
const fakeNpm = `#!/bin/sh
echo "$*" >>npm-runs
[ ! -e npm-fails ] || { mkdir -p node_modules; echo "npm error: no route"; exit 1; }
rm -rf node_modules
for arch in x64 arm64; do
  mkdir -p "node_modules/node-linux-$arch/bin"
  ln -s "${process.execPath}" "node_modules/node-linux-$arch/bin/node"
done
`;

const program = `
process.once("SIGTERM", () => { process.stdout.write("ended by a signal"); process.exit(7); });
if (process.argv[2] === "wait") { process.stdout.write("waiting "); setInterval(() => {}, 1000); }
else process.stdout.write(JSON.stringify(process.argv.slice(2)));
`;

class Clone extends PlantedTree {
  readonly home = join(this.root, "a clone");
  readonly launcher = join(this.home, "space");

  constructor() {
    super();
    this.write({
      "a clone/package-lock.json": "{}",
      "a clone/packages/space/src/main.ts": program,
      "bin/npm": fakeNpm,
    });
    copyFileSync(join(projectRoot, "space"), this.launcher);
    chmodSync(join(this.root, "bin/npm"), 0o755);
    symlinkSync(process.execPath, join(this.root, "bin/node"));
  }

  start(path: string, ...args: readonly string[]): ChildProcess {
    const { NODE_COMPILE_CACHE: _, ...outside } = process.env;
    const env = { ...outside, PATH: `${join(this.root, "bin")}:/usr/bin:/bin` };
    return spawn(path, args, { cwd: this.root, env, stdio: ["ignore", "pipe", "pipe"] });
  }

  run(...args: readonly string[]): Promise<Outcome> {
    return outcomeOf(this.start(this.launcher, ...args));
  }

  npmRuns(): number {
    const path = join(this.home, "npm-runs");
    return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n").length : 0;
  }
}

async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const read = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk: Buffer) => {
    read.stdout += chunk.toString("utf8");
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    read.stderr += chunk.toString("utf8");
  });
  const code = await new Promise<number | null>((settle) => {
    child.once("close", settle);
  });
  return { code, ...read };
}

describe("the launcher", () => {
  it("installs once, quietly, and passes its arguments on as they are", async () => {
    using clone = new Clone();
    const expected = { code: 0, stdout: '["one","two words",""]', stderr: "" };
    assert.deepEqual(await clone.run("one", "two words", ""), expected);
    assert.deepEqual(await clone.run("one", "two words", ""), expected);
    assert.equal(clone.npmRuns(), 1);
  });

  it("keeps what was compiled for the next start, and takes none of it for a source that has changed", async () => {
    using clone = new Clone();
    const main = join(clone.home, "packages/space/src/main.ts");
    assert.equal((await clone.run("a")).stdout, '["a"]');
    const kept = (): readonly string[] =>
      readdirSync(join(clone.home, ".space/compiled"), { recursive: true, encoding: "utf8" });
    assert.ok(kept().length > 1, "a folder of this Node's with something in it");
    const before = kept();
    writeFileSync(main, "process.stdout.write('changed');".padEnd(program.length));
    assert.equal((await clone.run("a")).stdout, "changed");
    assert.deepEqual(kept(), before, "one for a source, however often that changes");
  });

  it("finds its folder through symlinks", async () => {
    using clone = new Clone();
    symlinkSync("a clone/space", join(clone.root, "first"));
    symlinkSync(join(clone.root, "first"), join(clone.root, "bin/second"));
    const outcome = await outcomeOf(clone.start(join(clone.root, "bin/second"), "x"));
    assert.deepEqual(outcome, { code: 0, stdout: '["x"]', stderr: "" });
  });

  it("lets one of two concurrent first launches install", async () => {
    using clone = new Clone();
    const outcomes = await Promise.all([clone.run("a"), clone.run("b"), clone.run("c")]);
    assert.deepEqual(
      outcomes.map(({ stdout }) => stdout),
      ['["a"]', '["b"]', '["c"]'],
    );
    assert.equal(clone.npmRuns(), 1);
  });

  it("installs again when the lockfile has changed", async () => {
    using clone = new Clone();
    await clone.run("a");
    appendFileSync(join(clone.home, "package-lock.json"), "\n");
    assert.equal((await clone.run("a")).code, 0);
    assert.equal(clone.npmRuns(), 2);
  });

  it("names the log when the install fails, and tries again at the next launch", async () => {
    using clone = new Clone();
    clone.write({ "a clone/npm-fails": "" });
    const failed = await clone.run("a");
    assert.equal(failed.code, 1);
    assert.equal(failed.stdout, "");
    assert.match(
      failed.stderr,
      /npm error: no route\nspace: could not install .*a clone\/\.space\/install\.log\n$/s,
    );
    assert.equal((await clone.run("a")).code, 1);
    assert.equal(clone.npmRuns(), 2);
  });

  it("says what it needs where node or npm is missing", async () => {
    using clone = new Clone();
    const env = { PATH: join(clone.root, "empty") };
    clone.write({ "empty/note": "" });
    for (const name of ["sh", "uname", "dirname", "readlink", "cmp", "mkdir", "flock"]) {
      symlinkSync(`/usr/bin/${name}`, join(clone.root, "empty", name));
    }
    const bare = await outcomeOf(spawn(clone.launcher, ["a"], { env, stdio: ["ignore", "pipe", "pipe"] }));
    assert.equal(bare.code, 1);
    assert.match(bare.stderr, /needs Node\.js 20 or newer with npm/);
    symlinkSync(process.execPath, join(clone.root, "empty/node"));
    const half = await outcomeOf(spawn(clone.launcher, ["a"], { env, stdio: ["ignore", "pipe", "pipe"] }));
    assert.equal(half.code, 1);
    assert.match(half.stderr, /needs npm for its first start/);
  });

  it("becomes the program, so that a signal reaches it", async () => {
    using clone = new Clone();
    const child = clone.start(clone.launcher, "wait");
    child.stdout?.once("data", () => {
      child.kill("SIGTERM");
    });
    assert.deepEqual(await outcomeOf(child), { code: 7, stdout: "waiting ended by a signal", stderr: "" });
  });

  it("builds the guest's helper for what runs guests, and goes on when the build fails", async () => {
    using clone = new Clone();
    clone.write({
      "a clone/packages/spaced-guest/scripts/build.ts":
        'process.stdout.write("no header\\n"); process.exit(1);',
      "bin/cc": "",
    });
    chmodSync(join(clone.root, "bin/cc"), 0o755);
    assert.deepEqual(await clone.run("version"), { code: 0, stdout: '["version"]', stderr: "" });
    const { code, stdout, stderr } = await clone.run("up");
    assert.deepEqual({ code, stdout }, { code: 0, stdout: '["up"]' });
    assert.match(stderr, /no header\nspace: could not build .*build\.log\n$/s);
  });
});
