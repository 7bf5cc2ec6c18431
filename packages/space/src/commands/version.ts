// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { agentVersion } from "../product.ts";

export function version(): Promise<number> {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const own =
    typeof manifest === "object" && manifest !== null && "version" in manifest ? manifest.version : "unknown";
  process.stdout.write(
    `space ${String(own)}\nenvd protocol ${agentVersion}\nnode ${process.versions.node}\n`,
  );
  return Promise.resolve(0);
}
