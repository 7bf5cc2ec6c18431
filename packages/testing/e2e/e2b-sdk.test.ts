// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { hostResources, leftBehind } from "../src/host-resources.ts";
import { needsRoot as skip } from "../src/needs-root.ts";
import { checkout, runProgram, type SpaceProcess, startSpace } from "../src/space-process.ts";

const client = join(import.meta.dirname, "clients/sdk-tour.ts");
const resolver = join(checkout, "packages/space/preload/resolve-domain.cjs");
const resourcesBefore = hostResources();
let space: SpaceProcess;

before(async () => {
  if (skip === false) space = await startSpace();
});

after(async () => {
  if (skip !== false) return;
  assert.equal(await space.stop(), 0);
  space.forget();
  assert.deepEqual(leftBehind(resourcesBefore, hostResources()), {});
});

for (const sdk of ["e2b", "e2b-2-45"]) {
  test(`${sdk} works unmodified in URL mode`, { skip }, async () => {
    const { code, stdout, stderr } = await runProgram(process.execPath, [client, sdk], space.environment);
    assert.deepEqual([code, stdout], [0, "tour done\n"], stderr);
  });

  test(`${sdk} works unmodified in domain mode`, { skip }, async () => {
    const { E2B_API_URL: _api, E2B_SANDBOX_URL: _sandbox, ...domain } = space.environment;
    const { code, stdout, stderr } = await runProgram(
      process.execPath,
      ["--require", resolver, client, sdk],
      domain,
    );
    assert.deepEqual([code, stdout], [0, "tour done\n"], stderr);
  });
}
