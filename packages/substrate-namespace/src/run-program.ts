// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { spawn } from "node:child_process";
import { SpaceError } from "@space/model";

/** Programs of the host are looked up here, not where the daemon's environment says. */
export const programEnvironment: Readonly<Record<string, string>> = {
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
};

const shownBytes = 2000;

/** Runs a program to its end and returns its output. Throws `substrate/failed` with its error output as the cause. */
export function runProgram(command: string, args: readonly string[], cwd = "/"): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: programEnvironment, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (errors.length < shownBytes) errors += text.slice(0, shownBytes);
    });
    const fail = (cause: Error): void =>
      reject(new SpaceError("substrate/failed", { step: command }, { cause }));
    child.on("error", fail);
    child.on("close", (code) => {
      if (code === 0) resolve(output);
      else fail(new Error(`${command} ended with ${code ?? "a signal"}: ${errors}`));
    });
  });
}
