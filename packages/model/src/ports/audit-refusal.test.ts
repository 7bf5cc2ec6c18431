// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { it } from "node:test";
import { SpaceError } from "../errors.ts";
import { Secret } from "../secret.ts";
import { refusalFacts } from "./audit-refusal.ts";

it("an error gives its code and its problem to the log, and nothing else", () => {
  const cause = new Error("spc_very-secret");
  const wide = { problem: "form", token: "spc_very-secret" };
  assert.deepEqual(refusalFacts(new SpaceError("certificate/refused", wide, { cause })), {
    code: "certificate/refused",
    problem: "form",
  });
  assert.deepEqual(refusalFacts(cause), { code: "internal/bug", problem: "" });
});

it("a problem that is secret, or too long, is not written", () => {
  const secret = { problem: new Secret("spc_very-secret") } as never;
  assert.deepEqual(refusalFacts(new SpaceError("certificate/refused", secret)), {
    code: "certificate/refused",
    problem: "",
  });
  const long = new SpaceError("certificate/refused", { problem: "x".repeat(1_000) });
  assert.equal(refusalFacts(long).problem.length, 256);
});
