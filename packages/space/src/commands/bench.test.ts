// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { UsageError } from "../failure.ts";
import { parseBenchOptions } from "./bench.ts";

describe("the arguments of bench", () => {
  it("say what to measure, how long and how it is told", () => {
    assert.deepEqual(parseBenchOptions(["lifecycle", "--json", "--seconds", "90"]), {
      what: "lifecycle",
      json: true,
      quick: false,
      seconds: 90,
    });
    assert.equal(parseBenchOptions(["lifecycle"]).seconds, 60);
    assert.ok(parseBenchOptions(["lifecycle", "--quick"]).seconds < 60);
  });

  it("are refused when they name nothing, too much, or no time", () => {
    const wrong = [[], ["other"], ["path", "start"], ["lifecycle", "--seconds", "0"]];
    for (const args of [...wrong, ["lifecycle", "--seconds", "1e3"], ["path", "--seconds", "5"]])
      assert.throws(() => parseBenchOptions(args), UsageError, args.join(" "));
  });
});
