// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { SpaceError } from "@space/model";

/** What in a sandbox cannot be saved, for whoever can change it. */
interface Refusal {
  readonly problem: string;
  readonly remedy: string;
}

/** The lines by which CRIU says why, and what they mean. A number in the line is the process's on the host. */
const known: readonly (readonly [line: RegExp, refusal: Refusal])[] = [
  [
    /ctty inheritance detected.*?(?:ctty pid_real (?<pid>[0-9]+).*)?$/,
    {
      problem:
        "it holds a terminal that is not its own: /dev/tty, or one that it was started in by another program",
      remedy: "end it, or start it in a terminal of the API's",
    },
  ],
  [
    /In-flight connection/,
    {
      problem: "a connection to a port has not been accepted by the program that listens there",
      remedy: "have it accepted or closed, and try again",
    },
  ],
  [
    /create link remap for (?<what>\S+)\. /,
    { problem: "a file is open that was removed and has another name: $", remedy: "have it closed" },
  ],
  [
    /ghost file .*?(?<what>\/\S*).*(?:too big|limit)|Can't dump ghost file (?<other>\S+)/,
    { problem: "a large file is open that was removed: $", remedy: "have it closed" },
  ],
  [
    /found while seizing|is traced/,
    { problem: "a process is traced by another", remedy: "end its debugger" },
  ],
  [
    /Unseizable non-zombie (?<pid>[0-9]+)/,
    { problem: "it waits in a call that nothing interrupts", remedy: "try again" },
  ],
  [
    /External socket is used|half of stream unix connection|Unix socket [0-9a-fx]+ not found/,
    { problem: "a connection leads out of the sandbox", remedy: "have it closed, and try again" },
  ],
  [/io_uring/, { problem: "a process uses io_uring", remedy: "have it use something else" }],
];

/** What CRIU says whatever it is asked to do, and the last line of every failure. */
const idle = /RLIMIT_NOFILE|Dumping FAILED|Restoring FAILED/;
const shownLength = 300;

/** Who a host's process number stands for inside the guest, e.g. `python3 (7)`. */
export type Naming = (hostPid: number) => string | undefined;

/** Why CRIU did not save it, by the log of its errors. */
export function refusalIn(log: string, nameOf: Naming): SpaceError<"snapshot/unsavable"> {
  const lines = log.split("\n").filter((line) => line.includes("Error") && !idle.test(line));
  for (const [form, { problem, remedy }] of known) {
    const line = lines.find((text) => form.test(text));
    if (line === undefined) continue;
    const { pid, what, other } = form.exec(line)?.groups ?? {};
    const named = pid ?? /\(pid: ([0-9]+)\)/.exec(lines.join("\n"))?.[1];
    const holder = (named === undefined ? undefined : nameOf(Number(named))) ?? "a process";
    return unsavable(holder, problem.replace("$", what ?? other ?? "unknown"), remedy);
  }
  const first = lastWords(log);
  return unsavable("a process", `CRIU cannot save it: ${first}`, "end what the sandbox does not need");
}

export function unsavable(holder: string, problem: string, remedy: string): SpaceError<"snapshot/unsavable"> {
  return new SpaceError("snapshot/unsavable", { holder, problem, remedy });
}

/** The first error that CRIU tells, without when and where. */
export function lastWords(log: string): string {
  const line =
    log.split("\n").find((text) => text.includes("Error") && !idle.test(text)) ?? "no reason given";
  return line.replace(/^.*?Error \([^)]*\): /, "").slice(0, shownLength);
}
