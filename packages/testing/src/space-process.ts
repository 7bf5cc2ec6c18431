// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** The checkout under test. */
export const checkout: string = resolve(import.meta.dirname, "../../..");

const readyLimitMs = 60_000;

export interface SpaceProcess {
  readonly child: ChildProcess;
  readonly data: string;
  /** What `--env-file` wrote. */
  readonly environment: Readonly<Record<string, string>>;
  /** Everything that it printed. */
  output(): string;
  /** Ctrl-C, and waits for the end. Resolves with the exit code. */
  stop(): Promise<number | null>;
  /** Removes the data directory. */
  forget(): void;
}

/** Starts the real `./space up` on free ports and waits until it says that it is up. */
export async function startSpace(
  options: { readonly data?: string; readonly args?: readonly string[] } = {},
): Promise<SpaceProcess> {
  const data = options.data ?? mkdtempSync(join(tmpdir(), "space-e2e-"));
  const envFile = join(data, "space.env");
  const free = ["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0"];
  const child = spawn(
    join(checkout, "space"),
    ["up", "--data", data, "--env-file", envFile, ...free, ...(options.args ?? [])],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const printed: string[] = [];
  const ended = new Promise<number | null>((settle) => child.once("exit", settle));
  await new Promise<void>((settle, fail) => {
    const limit = setTimeout(
      () => fail(new Error(`not up after ${readyLimitMs} ms:\n${printed.join("")}`)),
      readyLimitMs,
    );
    const finish = (act: () => void): void => {
      clearTimeout(limit);
      act();
    };
    const onOutput = (bytes: Buffer): void => {
      printed.push(bytes.toString("utf8"));
      if (printed.join("").includes("SPACE is up")) finish(settle);
    };
    child.stdout.on("data", onOutput);
    child.stderr.on("data", onOutput);
    void ended.then((code) => finish(() => fail(new Error(`ended with ${code}:\n${printed.join("")}`))));
  });
  return {
    child,
    data,
    environment: parseEnvironment(readFileSync(envFile, "utf8")),
    output: () => printed.join(""),
    stop: () => {
      child.kill("SIGINT");
      return ended;
    },
    forget: () => rmSync(data, { recursive: true, force: true }),
  };
}

function parseEnvironment(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.includes("="))
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end with exactly this environment beside PATH and HOME. */
export function runProgram(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const { PATH = "", HOME = "" } = process.env;
  return new Promise((settle, fail) => {
    const child = spawn(program, [...args], {
      cwd: checkout,
      env: { PATH, HOME, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (bytes: Buffer) => out.push(bytes));
    child.stderr.on("data", (bytes: Buffer) => err.push(bytes));
    child.once("error", fail);
    child.once("close", (code) =>
      settle({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }),
    );
  });
}

/** Waits until the condition holds, looking again at each turn of a short timer. Fails after the limit. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((settle) => setTimeout(settle, 20));
  }
}
