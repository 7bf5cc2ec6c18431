// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The SPACE authors

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { importPublicKey, parseChainExport, verifyChainExport } from "@space/capability";
import { askInstallation } from "../admin/open-admin.ts";
import type { ChainFacts } from "../sandbox/sandbox-views.ts";

/** verifies the chain in this process, against the data directory's pinned root. Throws `chain/refused`. */
export async function chainFacts(data: string, sandboxId: string): Promise<ChainFacts> {
  const text = await askInstallation(data, "chain/export", { sandboxId });
  if (typeof text !== "string") throw new TypeError("no export");
  const root = importPublicKey(readFileSync(join(data, "control", "root.pub"), "utf8").trim());
  const { links, manifestOrder } = verifyChainExport(parseChainExport(text), root);
  const newest = links[0]?.certificate.identity.activation;
  return {
    activation: newest?.id ?? "none",
    attempt: newest?.attempt ?? 0,
    certificates: links.length,
    snapshots: manifestOrder.length,
  };
}
