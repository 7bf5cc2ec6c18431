// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CriuProgram } from "./criu-program.ts";
import { programEnvironment } from "./run-program.ts";

const stepLimitMs = 20_000;
const lifeSeconds = "60";
const common = ["--network-lock", "skip", "--manage-cgroups=ignore"] as const;

/**
 * Whether CRIU works on this kernel: its own check, and then a small process of this host's that is saved, which ends it,
 * and restored. Undefined when it does, otherwise why not. Leaves nothing behind.
 */
export async function tryCriu({ argv }: Pick<CriuProgram, "argv">): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "space-criu-"));
  const images = join(folder, "images");
  const pidFile = join(folder, "pid");
  const child = spawn("sleep", [lifeSeconds], {
    cwd: "/",
    detached: true,
    env: programEnvironment,
    stdio: "ignore",
  });
  const { pid } = child;
  try {
    if (pid === undefined) return "no process could be started";
    await mkdir(images);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const problem =
      (await run(argv, ["check"])) ??
      (await run(argv, ["dump", "-t", String(pid), "-D", images, ...common])) ??
      (await ended.then(() =>
        run(argv, ["restore", "-d", "-D", images, "--pidfile", pidFile, "--manage-cgroups=ignore"]),
      ));
    if (problem !== undefined) return problem;
    const restored = Number(await readFile(pidFile, "utf8"));
    const name = await readFile(`/proc/${restored}/comm`, "utf8");
    return restored === pid && name === "sleep\n" ? undefined : "what it restored is not what it saved";
  } catch (error) {
    return `what it restored is not there: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    await endSleep(pid);
    await rm(folder, { recursive: true, force: true });
  }
}

function run(
  [program = "", ...first]: readonly string[],
  args: readonly string[],
): Promise<string | undefined> {
  const options = { cwd: "/", env: programEnvironment, timeout: stepLimitMs, encoding: "utf8" } as const;
  return new Promise((resolve) => {
    execFile(program, [...first, ...args], options, (error, stdout, stderr) => {
      if (error === null) return resolve(undefined);
      const [line = error.message] = `${stdout}\n${stderr}`
        .split("\n")
        .filter((text) => text.includes("Error"));
      resolve(`criu ${args[0] ?? ""}: ${line.slice(0, 300)}`);
    });
  });
}

/** The one that was started or its restored self: it has the same number. */
async function endSleep(pid: number | undefined): Promise<void> {
  if (pid === undefined) return;
  try {
    if ((await readFile(`/proc/${pid}/comm`, "utf8")) === "sleep\n") process.kill(pid, "SIGKILL");
  } catch {
    // it has ended
  }
}
