// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { erase, writeErasedProgram } from "./erased-program.ts";

it("erases types and leads imports to the erased modules", () => {
  const { text, imports } = erase('import { type A, b } from "./c/d.ts";\nexport const e: number = b;\n');
  assert.match(text, /from "\.\/c\/d\.js"/);
  assert.doesNotMatch(text, /number|\.ts"/);
  assert.deepEqual(imports, ["./c/d.ts"]);
});

it("does not follow what is imported for its types only", () => {
  assert.deepEqual(erase('import type { A } from "./a.ts";\n').imports, []);
});

it("writes whole programs that import nothing with types any more", () => {
  const folder = mkdtempSync(join(tmpdir(), "space-erased-"));
  try {
    const target = writeErasedProgram(folder);
    const files = readdirSync(target, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".js"),
    );
    assert.ok(files.includes("portable-guest.js") && files.includes(join("portable", "guest-service.js")));
    for (const name of files) assert.doesNotMatch(readFileSync(join(target, name), "utf8"), /\.ts"/, name);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
