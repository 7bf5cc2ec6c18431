// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { judgeCriu, readCriuVersion } from "./criu-build.ts";
import { criuPackages } from "./criu-packages.ts";

it("a version of CRIU is what it says of itself", () => {
  assert.equal(readCriuVersion("Version: 4.2.1\nGitID: v4.2.1\n"), "4.2.1");
  assert.equal(readCriuVersion("Version: 4.2\n"), "4.2");
  for (const text of ["", "criu 4.2", "Version: four"]) assert.equal(readCriuVersion(text), undefined);
});

it("a version of CRIU is judged by what it did when it was run", () => {
  const reason = (version: string): string => {
    const verdict = judgeCriu(version);
    return verdict.kind === "refused" ? verdict.reason : verdict.kind;
  };
  assert.equal(reason("4.2.1"), "tested");
  for (const version of ["4.2", "4.3", "5.0"]) assert.equal(reason(version), "untested");
  assert.match(reason("3.17.1"), /vDSO/); // Debian 12's
  for (const version of ["4.0", "4.1.1"]) assert.match(reason(version), /hangs.*TCP/); // Debian 13's
});

it("the version of CRIU that is fetched is one that was tested, and every package is pinned", () => {
  const criu = criuPackages.find(({ name }) => name === "criu");
  const [version = ""] = criu?.pin?.version.split("-") ?? [];
  assert.equal(judgeCriu(version).kind, "tested");
  for (const { name, pin } of criuPackages) assert.match(pin?.sha256 ?? "", /^[0-9a-f]{64}$/, name);
});
