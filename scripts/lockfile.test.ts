// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { projectRoot } from "./planted-tree.ts";

type Versions = Readonly<Record<string, string>>;

interface Dependencies {
  readonly dependencies?: Versions;
  readonly devDependencies?: Versions;
  readonly optionalDependencies?: Versions;
}

interface LockedPackage extends Dependencies {
  readonly link?: boolean;
  readonly resolved?: string;
  readonly integrity?: string;
}

const read = (path: string): string => readFileSync(join(projectRoot, path), "utf8");
const lock = JSON.parse(read("package-lock.json")) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};

const manifests = [
  "",
  ...readdirSync(join(projectRoot, "packages")).map((folder) => `packages/${folder}`),
].map((home) => ({
  home,
  manifest: JSON.parse(read(join(home, "package.json"))) as Dependencies,
}));

function declared({ dependencies, devDependencies, optionalDependencies }: Dependencies): Versions {
  return { ...dependencies, ...devDependencies, ...optionalDependencies };
}

describe("the lockfile", () => {
  it("agrees with every manifest, so that a clean install accepts it", () => {
    for (const { home, manifest } of manifests) {
      assert.deepEqual(
        { ...declared(lock.packages[home] ?? {}) },
        { ...declared(manifest) },
        home || "the root",
      );
    }
  });

  it("names no registry, and pins every package from outside by its digest", () => {
    let pinned = 0;
    for (const [path, { link, resolved, integrity }] of Object.entries(lock.packages)) {
      assert.doesNotMatch(resolved ?? "", /:\/\//, path);
      if (link === true || !path.includes("node_modules/")) continue;
      assert.match(integrity ?? "", /^sha512-/, path);
      pinned += 1;
    }
    assert.ok(pinned > 50, "the lockfile was read");
  });

  it("is made from exact versions", () => {
    for (const { home, manifest } of manifests) {
      for (const [name, version] of Object.entries(declared(manifest))) {
        assert.match(version, /^(?:npm:[\w@/-]+@)?\d+\.\d+\.\d+$/, `${name} in ${home || "the root"}`);
      }
    }
  });
});
