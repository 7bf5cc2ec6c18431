// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { join } from "node:path";

/** Where `scripts/build.ts` puts the compiled launcher. Absent on hosts without a C compiler. */
export const nativeLauncherPath: string = join(
  import.meta.dirname,
  "..",
  "..",
  "..",
  "build",
  "native",
  "spaced-launch",
);

/** The same program in TypeScript, run by Node; the same arguments and the same protocol. */
export const portableLauncherPath: string = join(import.meta.dirname, "portable-launch.ts");
