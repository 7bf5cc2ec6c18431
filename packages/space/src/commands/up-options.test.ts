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
  assert.equal(options.memory, "frozen");
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

test("up hands moved sandboxes over from worker to worker as it is told", () => {
  assert.equal(parseUpOptions([]).directMoves, undefined);
  assert.equal(parseUpOptions(["--direct-moves", "on"]).directMoves, true);
  assert.equal(parseUpOptions(["--direct-moves", "off"]).directMoves, false);
  for (const wrong of ["", "yes"]) {
    assert.throws(() => parseUpOptions(["--direct-moves", wrong]), UsageError, wrong);
  }
});

test("up takes one place for snapshots: a directory, or a bucket whose key pair is in a file", () => {
  assert.equal(parseUpOptions([]).snapshots, undefined);
  assert.deepEqual(parseUpOptions(["--snapshots", "/srv/s"]).snapshots, {
    kind: "directory",
    path: "/srv/s",
  });
  const bucket = [
    "--s3-endpoint",
    "https://s3.example",
    "--s3-bucket",
    "mine",
    "--s3-credentials",
    "/srv/key",
  ];
  const place = { kind: "s3", endpoint: "https://s3.example", bucket: "mine", region: "us-east-1" };
  assert.deepEqual(parseUpOptions(bucket).snapshots, { ...place, credentials: "/srv/key" });
  const elsewhere = parseUpOptions([...bucket, "--s3-region", "eu-west-1"]).snapshots;
  assert.deepEqual(elsewhere, { ...place, region: "eu-west-1", credentials: "/srv/key" });
  for (const wrong of [
    bucket.slice(2),
    bucket.slice(0, 4),
    ["--s3-region", "eu-west-1"],
    [...bucket, "--snapshots", "/srv/s"],
    ["--s3-endpoint", "https://id:secret@s3.example", ...bucket.slice(2)],
    ["--s3-endpoint", "s3.example", ...bucket.slice(2)],
    [...bucket.slice(0, 2), "--s3-bucket", "Not/One", ...bucket.slice(4)],
  ])
    assert.throws(() => parseUpOptions(wrong), UsageError, wrong.join(" "));
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
    ["--memory", "none"],
    ["--memory", "criu", "--substrate", "gvisor"],
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
