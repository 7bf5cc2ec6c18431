// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

export const projectRoot = resolve(import.meta.dirname, "..");

export const header = "// SPDX-License-Identifier: Apache-2.0\n// Copyright 2026 The SPACE authors\n";

/** A throw-away tree in which a test plants a fault; removed when disposed. */
export class PlantedTree implements Disposable {
  readonly root = mkdtempSync(join(tmpdir(), "space-planted-"));

  /** Writes files by path; TypeScript gets the header that every source has. */
  write(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      const target = join(this.root, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, path.endsWith(".ts") && !text.startsWith("#!") ? header + text : text);
    }
  }

  writeManifest(folder: string, manifest: Readonly<Record<string, unknown>> = {}): void {
    const complete = {
      name: `@space/${folder}`,
      type: "module",
      exports: { ".": "./src/index.ts" },
      ...manifest,
    };
    this.write({ [`packages/${folder}/package.json`]: JSON.stringify(complete) });
  }

  /** Brings the project's own settings and its installed packages into this tree. */
  useProjectSettings(...names: readonly string[]): void {
    for (const name of names) copyFileSync(join(projectRoot, name), join(this.root, name));
    symlinkSync(join(projectRoot, "node_modules"), join(this.root, "node_modules"));
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
