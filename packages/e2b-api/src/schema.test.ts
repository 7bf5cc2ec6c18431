// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { isSpaceError } from "@space/model";

import { createRequest, unsupportedFeature } from "./create-request.ts";
import { defaultLimits } from "./limits.ts";
import { bodySchemas, type CreateBody, parseBody } from "./schema.ts";

const schemas = bodySchemas(defaultLimits);

/** Asserts that the body is refused, naming the field. */
function refused(run: () => unknown, field: string): void {
  assert.throws(run, (error) => isSpaceError(error, "input/invalid") && error.details.field === field, field);
}

const create = (body: object): CreateBody => parseBody(schemas.createV2, { templateID: "base", ...body });

describe("a create body", () => {
  it("needs only a template, and differs between the versions in the default time-out", () => {
    assert.equal(parseBody(schemas.createV1, { templateID: "base" }).timeout, 15);
    assert.equal(parseBody(schemas.createV2, { templateID: "base" }).timeout, 300);
  });

  it("translates every member that SPACE serves", () => {
    const body = create({
      timeout: 60,
      metadata: { a: "1" },
      envVars: { A: "=", B: "" },
      autoPause: true,
      autoPauseMemory: false,
      workerID: "wrk_aaaaaaaaaaaaaaaa",
    });
    assert.deepEqual(createRequest(body, "key-1"), {
      template: "base",
      timeoutMs: 60_000,
      metadata: { a: "1" },
      variables: { A: "=", B: "" },
      onTimeout: "pause",
      keepMemory: false,
      autoResume: false,
      autoRecover: false,
      workerId: "wrk_aaaaaaaaaaaaaaaa",
      idempotencyKey: "key-1",
    });
  });

  it("accepts each form of a template's name", () => {
    for (const templateID of ["base", "base:v2", "team/base", "team/base:v1.2", "rki5dems9wqfm4r03t7g"]) {
      assert.equal(create({ templateID }).templateID, templateID);
    }
  });

  it("drops members that it does not know", () => {
    assert.equal("future" in create({ future: { a: 1 } }), false);
  });

  it("is refused when it is not an object, or lacks its template", () => {
    for (const body of [null, 1, "x", [], true]) refused(() => parseBody(schemas.createV2, body), "body");
    refused(() => parseBody(schemas.createV2, {}), "templateID");
  });

  it("is refused by the name of the member that is wrong", () => {
    const bad: readonly (readonly [field: string, values: readonly unknown[]])[] = [
      ["templateID", [null, 7, "", "a b", "../x", "a/b/c", "a:b:c", ":v1", "x".repeat(257), "ä"]],
      ["timeout", [null, "60", -1, 1.5, 86_401, Number.MAX_VALUE, []]],
      ["metadata", [null, [], "x", { a: 1 }, { a: null }, { a: "\ud800" }]],
      ["envVars", [null, { A: 1 }, { "": "x" }, { "A=B": "x" }, { A: "\0" }, { "\0": "x" }]],
      ["autoPause", [null, "true", 1]],
      ["autoPauseMemory", ["false"]],
      ["autoResume", [true, null]],
      ["autoResume.enabled", [{}, { enabled: "yes" }]],
      ["secure", ["true"]],
      ["allow_internet_access", [0]],
      ["network", [[], "x", null]],
      ["volumeMounts", [{}, "x"]],
      ["workerID", ["wrk_x", 1, null, "wrk_aaaaaaaaaaaaaaaa\n"]],
    ];
    for (const [field, values] of bad) {
      const member = field.split(".")[0] ?? "";
      for (const value of values) refused(() => create({ [member]: value }), field);
    }
  });

  it("is bounded in its maps, by number and by bytes", () => {
    const many = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, "v"]));
    assert.equal(Object.keys(create({ metadata: many(256) }).metadata).length, 256);
    refused(() => create({ metadata: many(257) }), "metadata");
    create({ metadata: { k: "ä".repeat(32_767) } });
    refused(() => create({ metadata: { k: "ä".repeat(32_768) } }), "metadata");
    refused(() => create({ envVars: many(1025) }), "envVars");
    create({ envVars: { A: "x".repeat(131_068) } });
    refused(() => create({ envVars: { A: "x".repeat(131_069) } }), "envVars");
    refused(
      () => create({ envVars: { A: "x".repeat(131_000), B: "x".repeat(131_000), C: "x".repeat(150) } }),
      "envVars",
    );
  });

  it("keeps names that JavaScript gives a meaning to as plain names", () => {
    const metadata = JSON.parse('{"__proto__":"a","constructor":"b"}') as object;
    const parsed = create({ metadata }).metadata;
    assert.deepEqual(Object.entries(parsed), [
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
    assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
  });

  it("is refused when its pause rules contradict each other", () => {
    const request = (body: object): unknown => createRequest(create(body), undefined);
    refused(() => request({ autoPauseMemory: false }), "autoPauseMemory");
    const both = { autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } };
    refused(() => request(both), "autoResume");
    for (const key of ["", "x".repeat(129), "ä", "a b"]) {
      refused(() => createRequest(create({}), key), "Idempotency-Key");
    }
  });

  it("names what it asks for that SPACE cannot give yet, and lets defaults pass", () => {
    const unasked = [
      {},
      { mcp: null, iam: {}, volumeMounts: [], allow_internet_access: true, secure: true },
      { network: { allowPublicTraffic: true, denyOut: [], rules: {}, egressProxy: null } },
      { allow_internet_access: false },
    ];
    for (const body of unasked) assert.equal(unsupportedFeature(create(body)), undefined);
    const asked: readonly (readonly [object, string])[] = [
      [{ network: { denyOut: ["0.0.0.0/0"] } }, "network.denyOut"],
      [{ network: { allowPublicTraffic: false } }, "network.allowPublicTraffic"],
      [{ network: { maskRequestHost: "x" } }, "network.maskRequestHost"],
      [{ network: { rules: { "a.test": [] } } }, "network.rules"],
      [{ mcp: {} }, "mcp"],
      [{ iam: { tokens: {} } }, "iam"],
      [{ volumeMounts: [{ name: "v", path: "/v" }] }, "volumeMounts"],
    ];
    for (const [body, feature] of asked) assert.equal(unsupportedFeature(create(body)), feature);
  });
});

describe("the other bodies", () => {
  it("need a time-out where E2B's schema does, and have defaults where it has", () => {
    refused(() => parseBody(schemas.connectV1, {}), "timeout");
    refused(() => parseBody(schemas.timeout, {}), "timeout");
    assert.deepEqual(parseBody(schemas.connectV2, {}), { timeout: 300, memory: true });
    assert.deepEqual(parseBody(schemas.resume, { autoPause: true }), {
      timeout: 15,
      memory: true,
      autoPause: true,
    });
    assert.deepEqual(parseBody(schemas.pause, {}), { memory: true });
    assert.deepEqual(parseBody(schemas.refresh, {}), { duration: 15 });
  });

  it("are bounded", () => {
    assert.equal(parseBody(schemas.timeout, { timeout: 0 }).timeout, 0);
    assert.equal(parseBody(schemas.timeout, { timeout: 86_400 }).timeout, 86_400);
    refused(() => parseBody(schemas.timeout, { timeout: 86_401 }), "timeout");
    refused(() => parseBody(schemas.refresh, { duration: 3601 }), "duration");
    refused(() => parseBody(schemas.pause, { memory: "no" }), "memory");
    refused(() => parseBody(schemas.connectV2, { workerID: "x" }), "workerID");
  });
});
