// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { EnvdError } from "./envd-error.ts";
import { resolvePath } from "./guest-path.ts";

const base = { home: "/root", workdir: "/home/user" };

it("resolves as E2B's agent does", () => {
  const cases: [string, string][] = [
    ["", "/home/user"],
    ["/a/../b/", "/a/../b/"],
    ["~", "/root"],
    ["~/x", "/root/x"],
    ["x/./y", "/root/x/y"],
    ["../x", "/x"],
    ["a~", "/root/a~"],
  ];
  for (const [path, resolved] of cases) assert.equal(resolvePath(path, base), resolved, path);
});

it("refuses what no path can be", () => {
  for (const path of ["a\0b", "~other/x", `/${"x".repeat(5_000)}`]) {
    assert.throws(
      () => resolvePath(path, base),
      (error) => error instanceof EnvdError && error.code === "invalid_argument",
    );
  }
});
