// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { auditFieldClasses } from "@space/model";

const packages = join(import.meta.dirname, "../..");
const table = "model/src/ports/audit-events.ts";

interface Source {
  readonly path: string;
  readonly text: string;
}

function sources(): readonly Source[] {
  return readdirSync(packages, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))
    .map((path) => ({ path, text: readFileSync(join(packages, path), "utf8") }));
}

/** Records of the log about itself: `packages/audit-log` tests them by what the verifier says of them. */
const own = /^audit\//;

/** Event names that none of the files has after this mark. */
function unnamed(files: readonly Source[], mark: "" | '"'): readonly string[] {
  return Object.keys(auditFieldClasses).filter(
    (event) => !own.test(event) && !files.some(({ text }) => text.includes(`${mark}${event}`)),
  );
}

it("every event of the table is recorded somewhere, and every one is named by a test", () => {
  const all = sources();
  const isTest = ({ path }: Source): boolean => /\.test\.ts$/.test(path) || path.startsWith("testing/");
  assert.deepEqual(
    unnamed(
      all.filter((file) => !isTest(file) && file.path !== table),
      '"',
    ),
    [],
    "never recorded",
  );
  assert.deepEqual(unnamed(all.filter(isTest), ""), [], "in no test");
});
