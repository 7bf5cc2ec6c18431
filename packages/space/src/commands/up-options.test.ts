// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "../failure.ts";
import { parseUpOptions } from "./up-options.ts";

test("up listens on loopback with two workers by default", () => {
  const options = parseUpOptions([]);
  assert.equal(options.listen.host, "127.0.0.1");
  assert.equal(options.tlsListen.host, "127.0.0.1");
  assert.equal(options.workers, 2);
  assert.equal(options.substrate, "namespace");
});

test("up refuses an address beyond loopback unless --expose says so", () => {
  for (const flag of ["--listen", "--tls-listen"]) {
    assert.throws(
      () => parseUpOptions([flag, "0.0.0.0:80"]),
      (error) => error instanceof UsageError && error.message.includes("--expose"),
    );
    assert.throws(() => parseUpOptions([flag, "[::]:80"]), UsageError);
    assert.ok(parseUpOptions([flag, "0.0.0.0:80", "--expose"]).expose);
  }
});

test("R-16: up leases for 60 s, or for 15 to 120 s as it is told", () => {
  assert.equal(parseUpOptions([]).leaseSeconds, 60);
  assert.equal(parseUpOptions(["--lease", "15"]).leaseSeconds, 15);
  for (const wrong of ["14", "121", "60.5", "", "long"]) {
    assert.throws(() => parseUpOptions(["--lease", wrong]), UsageError, wrong);
  }
});

test("up names the flag that is wrong", () => {
  const wrong = [
    ["--listen", "7680"],
    ["--listen", "127.0.0.1:70000"],
    ["--domain", "Space.localhost"],
    ["--domain", "a..b"],
    ["--domain", "space.localhost:443"],
    ["--workers", "0"],
    ["--workers", "1.5"],
    ["--workers", "many"],
    ["--substrate", "docker"],
  ];
  for (const args of wrong) {
    assert.throws(
      () => parseUpOptions(args),
      (error) => error instanceof UsageError && error.message.includes(args[0] ?? ""),
      args.join(" "),
    );
  }
});

test("up refuses what it does not know", () => {
  assert.throws(() => parseUpOptions(["--wrokers", "2"]), UsageError);
  assert.throws(() => parseUpOptions(["somewhere"]), UsageError);
});
