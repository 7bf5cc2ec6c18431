// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { checkout } from "../product.ts";
import { type TestGroups, testGroups, unitGroups } from "./test-groups.ts";

/** How these files are grouped; each is named below packages/testing. */
function groupsOf(sources: Readonly<Record<string, string>>): TestGroups {
  const root = mkdtempSync(join(tmpdir(), "test-groups-"));
  try {
    for (const [name, text] of Object.entries(sources)) {
      const path = join(root, "packages/testing", name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    return testGroups(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

test("a test that can start a program, however far away, has the host to itself", () => {
  const { onTheHost, inProcess } = groupsOf({
    "contracts/near.test.ts": 'import { spawn } from "node:child_process";',
    "contracts/far.test.ts": 'import { one } from "../src/one.ts";',
    "contracts/late.test.ts": 'const { two } = await import("../src/two.ts");',
    "contracts/re-exported.test.ts": 'import "../src/three.ts";',
    "contracts/pure.test.ts": 'import { four } from "../src/four.ts";\nimport { join } from "node:path";',
    "src/one.ts": 'import {\n  two,\n} from "./two.ts";\nimport { four } from "./four.ts";',
    "src/two.ts": 'import { startEmbedded } from "@space/space";\nimport { one } from "./one.ts";',
    "src/three.ts": 'export { mount } from "@space/substrate-namespace";',
    "src/four.ts": 'import type { Clock } from "@space/model";',
  });
  const named = ["far", "late", "near", "re-exported"].map(
    (name) => `packages/testing/contracts/${name}.test.ts`,
  );
  assert.deepEqual(onTheHost, named);
  assert.deepEqual(inProcess, ["packages/testing/contracts/pure.test.ts"]);
});

test("files that import each other do not hide where they lead", () => {
  const { onTheHost } = groupsOf({
    "e2e/a.test.ts": 'import "../src/a.ts";',
    "e2e/b.test.ts": 'import "../src/b.ts";',
    "src/a.ts": 'import "./b.ts";\nimport "node:child_process";',
    "src/b.ts": 'import "./a.ts";',
  });
  assert.equal(onTheHost.length, 2);
});

test("a simulation, and a test of the rigs, is in neither group", () => {
  assert.deepEqual(groupsOf({ "sim/x.test.ts": "", "src/x.test.ts": "" }), { onTheHost: [], inProcess: [] });
});

test("an import of a file that is not there is refused", () => {
  assert.throws(() => groupsOf({ "e2e/a.test.ts": 'import "../src/gone.ts";' }), { code: "ENOENT" });
});

test("a test that starts only programs of others runs beside the rest, until it reaches more than that", () => {
  const name = "contracts/s3-byte-store.test.ts";
  const start = 'import { spawn } from "node:child_process";';
  const path = `packages/testing/${name}`;
  assert.deepEqual(groupsOf({ [name]: start }), { onTheHost: [], inProcess: [path] });
  assert.deepEqual(groupsOf({ [name]: `${start} import "@space/space";` }), {
    onTheHost: [path],
    inProcess: [],
  });
});

test("no test of this checkout that looks at the host, or starts SPACE, runs beside the others, and those are not few", () => {
  const { onTheHost, inProcess } = testGroups(checkout);
  for (const file of inProcess) {
    const text = readFileSync(join(checkout, file), "utf8");
    assert.doesNotMatch(
      text,
      /host-resources|shared-rig|needs-root|startSpace|packages\/space\/|preload/,
      file,
    );
  }
  assert.ok(onTheHost.length > 30 && inProcess.length > 50, `${onTheHost.length}, ${inProcess.length}`);
});

test("every unit test of this checkout is in one group, and one that starts programs is with those on the host", () => {
  const { onTheHost, inProcess } = unitGroups(checkout);
  assert.equal(new Set([...onTheHost, ...inProcess]).size, onTheHost.length + inProcess.length);
  for (const file of inProcess)
    assert.doesNotMatch(readFileSync(join(checkout, file), "utf8"), /child_process|preload/, file);
  assert.ok(onTheHost.length > 10 && inProcess.length > 80, `${onTheHost.length}, ${inProcess.length}`);
});
