// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { lastWords, refusalIn } from "./criu-refusal.ts";
import { userNamespaceImage } from "./user-namespace-image.ts";

const idle =
  "(00.1) Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted\n";
const end = "(00.3) Error (criu/cr-dump.c:1975): Dumping FAILED.\n";
const named = (pid: number): string | undefined => (pid === 30225 ? "sh (7)" : undefined);

it("what CRIU refuses is said in words for whoever can change it, and by whom", () => {
  const cases: readonly (readonly [line: string, holder: string, problem: RegExp])[] = [
    [
      "tty: ctty inheritance detected sid/pgrp 7 (ctty pid_real 30225 pty pid_real 30224)",
      "sh (7)",
      /terminal that is not its own/,
    ],
    ["tty: ctty inheritance detected sid/pgrp 7, no PTY peer with sid/pgrp needed", "a process", /terminal/],
    ["inet: In-flight connection (l) for 67dc81", "a process", /has not been accepted/],
    ["Can't create link remap for /tmp/a. Use link-remap option.", "a process", /another name: \/tmp\/a$/],
    ["zombie 29828 (comm python3) found while seizing", "a process", /traced/],
    ["Unseizable non-zombie 30225 found, state D, err -1/4", "sh (7)", /nothing interrupts/],
    ["Something new", "a process", /CRIU cannot save it: Something new$/],
  ];
  for (const [line, holder, problem] of cases) {
    const { details } = refusalIn(`${idle}(00.2) Error (criu/x.c:1): ${line}\n${end}`, named);
    assert.equal(details.holder, holder, line);
    assert.match(details.problem, problem);
    assert.notEqual(details.remedy, "");
  }
});

it("who holds an open file is found in the line after", () => {
  const log = `(00.2) Error (criu/sk-inet.c:185): inet: In-flight connection (l) for 67dc81
(00.2) Error (criu/cr-dump.c:1545): Dump files (pid: 30225) failed with -1\n`;
  assert.equal(refusalIn(idle + log + end, named).details.holder, "sh (7)");
});

it("a log without a reason, or with a long one, is told as what it is", () => {
  assert.equal(lastWords(idle + end), "no reason given");
  assert.equal(lastWords(`Error (a.c:1): ${"x".repeat(1000)}`).length, 300);
});

it("the image of a user namespace is what CRIU writes of one", () => {
  const written = "19435654064947551c0000000a0c08001080cee4cd0218808004120c08001080cee4cd0218808004";
  assert.equal(userNamespaceImage(700_000_000).toString("hex"), written);
});
