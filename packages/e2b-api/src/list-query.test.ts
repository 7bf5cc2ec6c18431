// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { isSpaceError, type ListSandboxes, type SandboxView } from "@space/model";

import { cursorAfter, parseCursor } from "./cursor.ts";
import { defaultLimits } from "./limits.ts";
import { parseListQuery, parseUnpagedQuery } from "./list-query.ts";

const parse = (query: string): ListSandboxes => parseListQuery(new URLSearchParams(query), defaultLimits);

function refused(query: string, field: string): void {
  assert.throws(
    () => parse(query),
    (error) => isSpaceError(error, "input/invalid") && error.details.field === field,
    query,
  );
}

describe("a list's query", () => {
  it("asks for both states, newest first, a hundred to the page, unless told otherwise", () => {
    assert.deepEqual(parse(""), { states: ["running", "paused"], metadata: {}, order: "desc", limit: 100 });
  });

  it("takes states with commas or repeated", () => {
    assert.deepEqual(parse("state=paused").states, ["paused"]);
    assert.deepEqual(parse("state=running,paused").states, ["running", "paused"]);
    assert.deepEqual(parse("state=running&state=paused&state=paused").states, ["running", "paused"]);
  });

  it("takes order, limit, template and a time", () => {
    const parsed = parse("order=asc&limit=1&template=base&startedAfter=2026-11-30T01:00:00.5%2B01:00");
    assert.equal(parsed.order, "asc");
    assert.equal(parsed.limit, 1);
    assert.equal(parsed.template, "base");
    assert.equal(parsed.startedAfterMs, Date.UTC(2026, 10, 30, 0, 0, 0, 500));
  });

  it("reads metadata as E2B's clients encode it: each part twice", () => {
    const awkward = { "a b": "c&d=e", "100%": "+ü/?", __proto__x: "" };
    const once = Object.entries(awkward).map(([k, v]) => [encodeURIComponent(k), encodeURIComponent(v)]);
    const twice = new URLSearchParams(Object.fromEntries(once) as Record<string, string>).toString();
    const query = new URLSearchParams({ metadata: twice }).toString();
    assert.deepEqual(parse(query).metadata, awkward);
  });

  it("reads metadata that was encoded once, by hand", () => {
    const metadata = encodeURIComponent("user=a%26b&app=prod");
    assert.deepEqual(parse(`metadata=${metadata}`).metadata, { user: "a&b", app: "prod" });
  });

  it("is refused by the name of the parameter that is wrong", () => {
    for (const value of ["", "stopped", "running,", "RUNNING"]) refused(`state=${value}`, "state");
    for (const value of ["", "up"]) refused(`order=${value}`, "order");
    for (const value of ["", "0", "101", "-1", "1.5", "1e1", "x"]) refused(`limit=${value}`, "limit");
    for (const value of ["", "now", "2026-11-30", "2026-13-30T00:00:00Z"])
      refused(`startedAfter=${value}`, "startedAfter");
    for (const value of ["a", "%3Db", "a%3Db%26a%3Dc", "a%3D%2525zz"])
      refused(`metadata=${value}`, "metadata");
    refused(`metadata=${"x".repeat(70_000)}%3Dy`, "metadata");
  });

  it("of the first version asks for what runs, and knows no pages", () => {
    const parsed = parseUnpagedQuery(
      new URLSearchParams("state=paused&limit=3&metadata=a%3Db"),
      defaultLimits,
    );
    assert.deepEqual(parsed, { states: ["running"], metadata: { a: "b" }, order: "desc", limit: 1000 });
  });
});

describe("a cursor", () => {
  const last = { sandboxId: "iaaaaaaaaaaaaaaaaaaa1", startedAtMs: 1_796_000_000_000 } as SandboxView; // cast: all that it reads

  it("leads back to the position that it was made from", () => {
    assert.deepEqual(parseCursor(cursorAfter(last, "asc"), "asc"), last);
    assert.deepEqual(parse(`nextToken=${cursorAfter(last, "desc")}`).after, last);
  });

  it("is refused when it is of another order, changed, or of another form", () => {
    const good = cursorAfter(last, "desc");
    const forged = (text: string): string => Buffer.from(text).toString("base64url");
    const bad = [
      cursorAfter(last, "asc"),
      `${good}=`,
      good.slice(1),
      "x",
      forged(`desc -1 ${last.sandboxId}`),
      forged(`desc 1e3 ${last.sandboxId}`),
      forged("desc 1 ishort"),
      forged(`desc 1 ${last.sandboxId}\n`),
      "A".repeat(4000),
    ];
    for (const token of bad) refused(`nextToken=${encodeURIComponent(token)}`, "nextToken");
  });
});
