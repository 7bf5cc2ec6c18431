// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { faultLanded } from "../../src/fault-landed.ts";
import { edited } from "../loader.ts";
import { searchCore } from "./core-search.ts";
import { productDecisions } from "./decisions.ts";
import { gatewayTable } from "./gateway-table.ts";
import type { HuntedFault } from "./model-report.ts";
import { searchModel } from "./model-search.ts";
import { plainSearch } from "./plain-search.ts";
import { plantedFaults } from "./planted-faults.ts";
import { searchProduct } from "./product-search.ts";
import { productGuards } from "./rules.ts";

test("R-12, R-13, R-15, R-16, R-24, incident 31: no state that two workers, two gateways and two generations can reach breaks an invariant", async () => {
  const { found, whole, invariants } = await searchModel(2);
  assert.equal(found, null);
  assert.ok((whole?.states ?? 0) > 500_000, "every state was visited");
  for (const { name, tested } of invariants) assert.ok(tested > 0, `never put to the test: ${name}`);
  faultLanded("each invariant was put to the test", Math.min(...invariants.map(({ tested }) => tested)));
});

test("the search of states by bits and a plain search of whole states visit as many, by as many steps", async () => {
  const rules = { decisions: await productDecisions(), guards: productGuards, generations: 1 };
  const product = searchProduct(searchCore(rules), gatewayTable(rules.decisions), rules);
  const plain = plainSearch(rules, 2);
  assert.equal(product.broken, undefined);
  assert.equal(plain.found, undefined);
  assert.equal(product.states, plain.states);
  assert.equal(product.steps, plain.steps);
});

test("the search of states by bits ends where a gateway breaks an invariant", async () => {
  const product = await productDecisions();
  const decisions = { ...product, isDoubted: () => false };
  const rules = { decisions, guards: productGuards, generations: 1 };
  const { broken } = searchProduct(searchCore(rules), gatewayTable(decisions), rules);
  assert.equal(broken, "R-24: a rejected entry is not presented again");
});

for (const { name, fault, edits } of plantedFaults) {
  test(`the model's search finds it when ${name}: ${fault}`, () => {
    const main = join(import.meta.dirname, "main.ts");
    const { status, stdout } = spawnSync(process.execPath, [main, "--fault", name], { encoding: "utf8" });
    assert.equal(status, 0);
    const { found }: HuntedFault = JSON.parse(stdout);
    assert.ok(found !== null, "it was not found");
    assert.ok(found.way.length >= 4, "a way from the first state is shown");
    assert.ok(!found.way.includes("?"), "every step of it has a name");
    const packages = resolve(import.meta.dirname, "../../..");
    for (const edit of edits) edited(readFileSync(join(packages, edit.file), "utf8"), edit);
  });
}
