// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { unreachable } from "./brand.ts";
import { isErrorCode, isSpaceError, SpaceError } from "./errors.ts";

it("is its code; what is inside the process stays in the cause", () => {
  const cause = new Error("inside");
  const error = new SpaceError("sandbox/not-found", { sandboxId: "x" }, { cause });
  assert.deepEqual(
    [error.name, error.message, error.code, error.kind, error.details, error.cause],
    ["SpaceError", "sandbox/not-found", "sandbox/not-found", "not-found", { sandboxId: "x" }, cause],
  );
  assert.ok(error instanceof Error);
});

it("is told from other errors, and by its code", () => {
  const error: unknown = new SpaceError("link/closed", {});
  assert.deepEqual(
    [
      isSpaceError(error),
      isSpaceError(error, "link/closed"),
      isSpaceError(error, "key/missing"),
      isSpaceError(new Error("link/closed")),
    ],
    [true, true, false, false],
  );
});

it("knows its codes, and none that every object has", () => {
  assert.deepEqual(["link/closed", "link/other", "toString", "__proto__"].map(isErrorCode), [
    true,
    false,
    false,
    false,
  ]);
});

it("the end of an exhaustive switch is a bug", () => {
  assert.throws(() => unreachable("x" as never), TypeError);
});
