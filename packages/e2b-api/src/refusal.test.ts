// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { type Json, SpaceError } from "@space/model";

import { refusalOf } from "./refusal.ts";

const body = (failure: unknown): { readonly [name: string]: Json } =>
  refusalOf(failure).body as { readonly [name: string]: Json }; // cast: every refusal has an object for a body

describe("a failure", () => {
  it("carries its status as a number in the body, and a stable code where it helps", () => {
    const answer = refusalOf(new SpaceError("sandbox/not-found", { sandboxId: "i0" }));
    assert.equal(answer.status, 404);
    assert.deepEqual(answer.body, {
      code: 404,
      message: "sandbox 'i0' not found",
      error_code: "sandbox/not-found",
    });
  });

  it("says which template is unknown in E2B's words", () => {
    assert.equal(
      body(new SpaceError("template/not-found", { template: "x" }))["message"],
      "template 'x' not found",
    );
  });

  it("names the field that is wrong", () => {
    const failure = new SpaceError("input/invalid", { field: "timeout", problem: "must be whole seconds" });
    assert.equal(body(failure)["message"], "timeout must be whole seconds");
  });

  it("that may pass says after how many whole seconds to try again", () => {
    const retry = (failure: SpaceError): string | undefined => refusalOf(failure).headers?.["Retry-After"];
    assert.equal(retry(new SpaceError("limit/sandboxes", { limit: 1 })), "1");
    assert.equal(retry(new SpaceError("worker/none-free", {})), "1");
    assert.equal(retry(new SpaceError("route/unrepaired", { sandboxId: "i0", retryAfterMs: 2100 })), "3");
    assert.equal(retry(new SpaceError("sandbox/not-found", { sandboxId: "i0" })), undefined);
  });

  it("of our insides shows no code, no detail and no cause", () => {
    const cause = new Error("password is hunter2");
    const inside = [
      new SpaceError("store/failed", { step: "hunter2" }, { cause }),
      new SpaceError("substrate/failed", { step: "hunter2" }),
      new SpaceError("certificate/refused", { problem: "hunter2" }),
      new SpaceError("link/protocol", { problem: "hunter2" }),
      cause,
      "hunter2",
      undefined,
    ];
    for (const failure of inside) {
      assert.doesNotMatch(JSON.stringify(refusalOf(failure)), /hunter2/);
      assert.equal(body(failure)["error_code"], undefined);
    }
    assert.equal(refusalOf(cause).status, 500);
  });

  it("of the store is never taken for an absent sandbox", () => {
    assert.equal(refusalOf(new SpaceError("store/failed", { step: "read" })).status, 503);
  });
});

it("says of a snapshot that cannot be read what stays as it was, and nothing of keys and names", () => {
  for (const [error, said] of [
    [new SpaceError("chunk/damaged", { name: "n4me" }), /stays paused until it is put right/],
    [new SpaceError("snapshot/missing", { digest: "n4me" }), /stays paused until it is put right/],
    [new SpaceError("snapshot/version", { version: 2 }), /another version of SPACE/],
    [
      new SpaceError("key-wrapping/unknown", { wrappingKey: "n4me" }),
      /until its operator has put the key back/,
    ],
  ] as const) {
    const text = JSON.stringify(refusalOf(error));
    assert.match(text, said);
    assert.doesNotMatch(text, /n4me/);
  }
});
