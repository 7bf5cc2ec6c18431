// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors
//
// Builds native/spaced-launch with the system's C compiler. Does nothing when the sources, the flags and the compiler are
// those of the last build; without a compiler it says so and succeeds: the portable launcher is used then.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { nativeLauncherPath } from "../src/native-launcher.ts";

const sourceDir = join(import.meta.dirname, "..", "native");
const flags = ["-std=gnu11", "-O2", "-static", "-pthread", "-Wall", "-Wextra", "-Werror"];

function digestOf(files: readonly string[], compilerVersion: string): string {
  const hash = createHash("sha256").update(compilerVersion).update(flags.join(" "));
  for (const file of files) hash.update(file).update(readFileSync(join(sourceDir, file)));
  return hash.digest("hex");
}

function readStamp(path: string): string {
  try {
    accessSync(nativeLauncherPath, constants.X_OK);
    return readFileSync(path, "utf8");
  } catch {
    return ""; // never built
  }
}

function build(): number {
  const compiler = process.env["CC"] ?? "cc";
  const version = spawnSync(compiler, ["--version"], { encoding: "utf8" });
  if (version.status !== 0) {
    process.stderr.write("no C compiler found: the portable launcher will be used (slower, no terminals)\n");
    return 0;
  }
  const files = readdirSync(sourceDir)
    .filter((name) => name.endsWith(".c") || name.endsWith(".h"))
    .sort();
  const digest = digestOf(files, version.stdout);
  const stampPath = `${nativeLauncherPath}.digest`;
  if (readStamp(stampPath) === digest) return 0;
  mkdirSync(join(nativeLauncherPath, ".."), { recursive: true });
  const temporary = `${nativeLauncherPath}.${process.pid}`;
  const sources = files.filter((name) => name.endsWith(".c")).map((name) => join(sourceDir, name));
  const result = spawnSync(compiler, [...flags, "-o", temporary, ...sources], { encoding: "utf8" });
  if (result.status !== 0) {
    rmSync(temporary, { force: true });
    process.stderr.write(result.stderr);
    process.stderr.write("the native launcher could not be built: the portable one will be used\n");
    return 1;
  }
  renameSync(temporary, nativeLauncherPath);
  writeFileSync(`${stampPath}.${process.pid}`, digest);
  renameSync(`${stampPath}.${process.pid}`, stampPath);
  return 0;
}

process.exitCode = build();
