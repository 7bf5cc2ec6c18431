// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSpaceError } from "@space/model";
import { UsageError } from "../failure.ts";
import { drill, parse, requirePrograms } from "./drill.ts";

test("a drill takes the numbers that it knows, and has its own for the others", () => {
  const defaults = { lease: 15, cut: 60 };
  assert.deepEqual(parse(["--cut", "25", "--json"], defaults), {
    json: true,
    numbers: { lease: 15, cut: 25 },
  });
  assert.throws(() => parse(["--callers", "3"], defaults), UsageError);
  for (const wrong of ["0", "-1", "1.5", "many", "99999999"])
    assert.throws(() => parse(["--cut", wrong], defaults), UsageError, wrong);
});

test("who names no drill, or one that there is not, is told which there are", async () => {
  for (const args of [[], ["quiet"], ["constructor"]])
    await assert.rejects(
      drill(args),
      (error) => error instanceof UsageError && /drill partition/.test(error.message),
    );
});

test("a drill that needs a program of the host says so when it is missing", () => {
  requirePrograms(["ip"], { program: (name) => `/sbin/${name}` });
  assert.throws(
    () => requirePrograms(["ip", "ss"], { program: (name) => (name === "ip" ? "/sbin/ip" : undefined) }),
    (error) => isSpaceError(error, "host/unfit") && error.details.problem === "the drill needs ss",
  );
});
